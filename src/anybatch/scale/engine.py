"""Where the work on shards is done: one seam, whoever does it."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Generic, Protocol, TypeAlias, TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")
Handle = TypeVar("Handle")
Piece = TypeVar("Piece")

Progress: TypeAlias = Callable[[int], None]
"""Called with how many more bytes of the files have been passed."""


@dataclass(frozen=True, slots=True)
class Task(Generic[Given]):
    """One piece of work. It may be done twice: the second time gives the same files and the same value."""

    number: int
    given: Given
    what: str
    """What it is called in an error."""
    file_bytes: int
    """How much of the files is passed when it is done."""
    needed_bytes: int
    """The most memory it takes."""


class Engine(Protocol):
    """Whoever does tasks: with at most a few under way, so that a million of them may be waiting."""

    def run(
        self, work: Callable[[Given], Made], tasks: Iterable[Task[Given]]
    ) -> Generator[tuple[Task[Given], Made], None, None]:
        """Yield each task and its value as soon as it is done, in whatever order; an error ends all."""


@contextmanager
def opened_engine(name: str, address: str | None = None) -> Iterator[Engine]:
    """Give the engine of that name: "local", threads of this process, or "ray", tasks on a cluster.

    >>> with opened_engine("local") as engine:
    ...     tasks = [Task(number, number, "a number", 0, 0) for number in range(3)]
    ...     sorted(made for _, made in engine.run(abs, tasks))
    [0, 1, 2]
    """
    if name == "ray":
        from anybatch.scale.ray_engine import connected

        with connected(address) as engine:
            yield engine
        return
    if name != "local":
        raise ValueError(f'engine is {name!r}; it can be "local" or "ray"')
    if address is not None:
        raise ValueError(f"address `{address}` names a Ray cluster, and the engine is `local`")
    from anybatch.scale.local_engine import LocalEngine

    yield LocalEngine()


def as_finished(
    pieces: Iterable[Piece],
    under_way: dict[Handle, Piece],
    *,
    room: Callable[[], int],
    start: Callable[[Piece], Handle],
    finished: Callable[[list[Handle]], Iterable[Handle]],
) -> Iterator[tuple[Piece, Handle]]:
    """Yield pieces of work as they end, tasks or bundles of them.

    No more than `room()` are under way; `finished` waits for some, or a while.
    """
    waiting = iter(pieces)
    while True:
        for piece in islice(waiting, max(0, room() - len(under_way))):
            under_way[start(piece)] = piece
        if not under_way:
            return
        for handle in finished(list(under_way)):
            yield under_way.pop(handle), handle
