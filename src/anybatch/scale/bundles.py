"""Several small tasks as one: placing a task costs a cluster milliseconds, and some take little longer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic

from anybatch.scale.engine import Given, Task

_PER_PROCESSOR = 16
"""So many bundles there are for each at least: the last ones must not run alone."""
_MOST_BYTES = 512 << 20
"""What is repeated at most when a worker dies."""


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


def bundled(tasks: Sequence[Task[Given]], processors: int) -> Iterator[Bundle[Given]]:
    """Yield all tasks in order, some at a time where there are many for every processor.

    >>> tasks = [Task(number, number, f"task {number}", 0, 0) for number in range(100)]
    >>> [len(bundle.tasks) for bundle in bundled(tasks, 2)][:3], len(list(bundled(tasks[:32], 2)))
    ([3, 3, 3], 32)
    """
    most = max(1, len(tasks) // (_PER_PROCESSOR * max(1, processors)))
    waiting = iter(tasks)
    while some := list(islice(waiting, most)):
        yield from _light(some)


def _light(tasks: list[Task[Given]]) -> Iterator[Bundle[Given]]:
    """Cut a series of tasks where it would pass too much of the files."""
    some: list[Task[Given]] = []
    for task in tasks:
        if some and sum(one.file_bytes for one in (*some, task)) > _MOST_BYTES:
            yield Bundle(tuple(some))
            some = []
        some.append(task)
    yield Bundle(tuple(some))
