"""Records decoded once: kept as columns, and given out in whatever order they are asked for."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from anybatch.errors import Damage
from anybatch.stream.chunk import Chunk, State
from anybatch.stream.lifted import lifted
from anybatch.stream.order import Addressed, Kept
from anybatch.stream.run import Run
from anybatch.stream.stored import CACHE_WEIGHT, Held, Stored


def cache_path(path: str | os.PathLike[str]) -> Path:
    """Return the folder that a cache is to lie in; it need not be there yet."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"cache lies in a folder, given by its path; got {path!r}")
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"cache lies in a folder, and `{folder}` is a file; name another place")
    return folder


@dataclass(frozen=True, slots=True)
class Cache(Kept):
    """The parent's elements, kept by number: in memory within the limit, else mapped from files.

    Changes of order apply above it wherever they are written, so that every epoch is shuffled anew. What is
    random below it happens once.
    """

    path: Path | None
    held: Held = field(default_factory=Held, compare=False, repr=False)

    def __post_init__(self) -> None:
        lifted(self.parent)

    def addressed(self) -> Addressed:
        below = lifted(self.parent)
        return Addressed(Stored(below.content, self.path, self.held), below.steps)

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        return self.addressed().open(run, state)

    def length(self) -> int:
        try:
            return self.parent.length()
        except TypeError:
            # what a filter keeps is known once it is kept here
            if self.held.table is None:
                raise
            return self.addressed().length()

    @property
    def weight(self) -> int:
        return self.parent.weight + CACHE_WEIGHT

    @property
    def reserved_bytes(self) -> int:
        # windows of what is kept are computed
        return lifted(self.parent).content.reserved_bytes

    def damages(self) -> list[Damage]:
        table = self.held.table
        return list(dict.fromkeys([*self.parent.damages(), *(table.damages if table else ())]))

    def described(self) -> str:
        return "cache()"
