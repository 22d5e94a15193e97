"""What is known about each file of a data set; a file that cannot be examined does not stop the others."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anybatch._native import Index
from anybatch.errors import AnybatchError, Damage, NotRecords
from anybatch.records.shards import Shard, find_shards
from anybatch.records.threads import Each, on_threads

Examined = tuple[Index, Path | None, bool]
"""An index, the sidecar that holds it if any does, and whether that was there before."""


@dataclass(frozen=True, slots=True)
class ShardReport:
    """What one file's index says, or in `problem` why it has none: then the numbers are 0."""

    file: str
    compression: str = ""
    file_bytes: int = 0
    stream_bytes: int = 0
    records: int = 0
    """How many can be read: those known to be damaged are not counted."""
    verified: bool = False
    """Every record's data was checked, now or before."""
    damaged: tuple[Damage, ...] = ()
    sidecar: str | None = None
    from_sidecar: bool = False
    """The sidecar was there before and nothing was read."""
    problem: str | None = None
    unreadable: bool = False
    """The problem is that the file could not be read, not what it holds."""


@dataclass(frozen=True, slots=True)
class Overview:
    """The reports of all files, in their order."""

    shards: tuple[ShardReport, ...]

    @property
    def records(self) -> int:
        """How many records can be read."""
        return sum(shard.records for shard in self.shards)

    @property
    def file_bytes(self) -> int:
        """The size of all files that could be examined."""
        return sum(shard.file_bytes for shard in self.shards)

    @property
    def damaged(self) -> tuple[Damage, ...]:
        """The ledger of all files."""
        return tuple(damage for shard in self.shards for damage in shard.damaged)

    @property
    def failed(self) -> tuple[ShardReport, ...]:
        """The files that could not be examined."""
        return tuple(shard for shard in self.shards if shard.problem)


def report_on(
    files: Iterable[str], examine: Callable[[Shard], Examined], *, each: Each = on_threads
) -> Overview:
    """Return the reports of all files, several examined at a time; errors are reported, not raised."""
    return Overview(tuple(each(partial(report_of, examine=examine), files)))


def report_of(file: str, examine: Callable[[Shard], Examined]) -> ShardReport:
    """Return the report of one file; an error is reported, not raised."""
    try:
        (shard,) = find_shards([file])
        return _described(shard, *examine(shard))
    except NotRecords as error:
        return ShardReport(file, problem=f"it holds no TFRecords: {error.why}")
    except (AnybatchError, OSError) as error:
        return ShardReport(file, problem=_without_name(error), unreadable=True)


def _described(shard: Shard, index: Index, sidecar: Path | None, from_sidecar: bool) -> ShardReport:
    return ShardReport(
        shard.path,
        shard.compression,
        index.file_bytes,
        index.stream_bytes,
        index.records - index.bad_records,
        index.verified,
        tuple((shard.path, *where) for where in index.damaged),
        None if sidecar is None else str(sidecar),
        from_sidecar,
    )


def _without_name(error: Exception) -> str:
    """Return what an error says; of the system's own, without the file's name, which the report has."""
    text = getattr(error, "strerror", None)
    return text if isinstance(text, str) else str(error)
