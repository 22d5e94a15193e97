"""Several small tasks as one: placing a task costs a cluster milliseconds, and some take little longer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic

from anybatch.scale.engine import Given, Task

_SHARES = 3
"""A bundle is that part of what is left for one processor: the last ones are single tasks, so that none of
them runs alone for long."""
_MOST_BYTES = 512 << 20
"""Above that a task takes far longer than placing it does."""
_MOST_TASKS = 1_000
"""However small they are: all are sent at once, and wait where they were sent to."""


@dataclass(frozen=True, slots=True)
class Bundle(Generic[Given]):
    """Tasks that are done one after the other by one worker."""

    tasks: tuple[Task[Given], ...]

    @property
    def what(self) -> str:
        """What they are called in an error."""
        more = len(self.tasks) - 1
        return self.tasks[0].what + (f" and {more} more" if more else "")

    @property
    def needed_bytes(self) -> int:
        """The most memory that one of them takes."""
        return max(task.needed_bytes for task in self.tasks)

    def behind_the_first(self) -> "Bundle[Given] | None":
        """Return what is left when the first task is done; None if that is nothing."""
        return Bundle(self.tasks[1:]) if len(self.tasks) > 1 else None


def bundled(tasks: Sequence[Task[Given]], processors: int) -> Iterator[Bundle[Given]]:
    """Yield all tasks in order, some at a time where many are left for every processor.

    >>> tasks = [Task(number, number, f"task {number}", 0, 0) for number in range(32)]
    >>> [len(bundle.tasks) for bundle in bundled(tasks, 2)]
    [5, 4, 3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    """
    start = 0
    while start < len(tasks):
        most = min(_MOST_TASKS, (len(tasks) - start) // (_SHARES * max(1, processors)))
        bundle = Bundle(tuple(_light(tasks[start : start + max(1, most)])))
        yield bundle
        start += len(bundle.tasks)


def _light(tasks: Sequence[Task[Given]]) -> Iterator[Task[Given]]:
    """Yield the first tasks, until they would pass too much of the files; one at least."""
    passed_bytes = 0
    for number, task in enumerate(tasks):
        passed_bytes += task.file_bytes
        if number and passed_bytes > _MOST_BYTES:
            return
        yield task
