"""How long workers that were told to end are waited for: one of them may have a large state to write."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from anybatch.handover import TEMPORARY_ENDING

GRACE_SECONDS = 30.0
"""How long the others have to notice that one is gone, and worker 0 to go on writing its state."""

FLUSH_SECONDS = 300.0
"""The same while a file is half written: a disk takes in at its own pace what the page cache took at once."""


@dataclass(frozen=True, slots=True)
class Written:
    """What there is in a folder of states: names, sizes and times, which change while one is written."""

    files: tuple[tuple[str, int, int], ...] = ()

    @property
    def half(self) -> bool:
        """Whether a file has not got its name yet."""
        return any(name.endswith(TEMPORARY_ENDING) for name, _, _ in self.files)


def written_in(folder: Path | None) -> Written:
    """Return what there is in a folder. One look at each of a few files."""
    return Written() if folder is None else Written(tuple(sorted(_files(folder))))


def _files(folder: Path) -> Iterator[tuple[str, int, int]]:
    for within, _, names in os.walk(folder):
        for name in names:
            try:
                found = Path(within, name).stat()
            except OSError:
                # it got its name, or went, meanwhile
                continue
            yield name, found.st_size, found.st_mtime_ns


def prolonged(deadline: float, now: float, before: Written, seen: Written) -> float:
    """Return until when to wait for a worker whose states looked like `before` a moment ago."""
    if seen == before:
        return deadline
    return now + (FLUSH_SECONDS if seen.half else GRACE_SECONDS)
