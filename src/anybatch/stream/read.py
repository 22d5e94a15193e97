"""Streams over record shards."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from anybatch.errors import Damage
from anybatch.records import BytesColumn, Columns, Ledger, Paths, RecordSet, find_shards, infer_from, resolve, row
from anybatch.stream.stage import Stage
from anybatch.stream.stream import Stream

# single records are decoded so many at a time
_AT_A_TIME = 256


def read(
    paths: Paths,
    features: Mapping[str, Any] | type[bytes] | None = None,
    *,
    on_corrupt: str = "raise",
    max_corrupt: float | None = None,
    compression: str | None = "auto",
) -> Stream:
    """Return a stream over TFRecord shards: a path, a glob or a list of them.

    `features` says what to decode; None infers it from a sample of every shard, `bytes` gives each
    record's bytes as they are. `on_corrupt="skip"` leaves out only what is damaged, and `max_corrupt`
    (a count, or a fraction below 1) turns too much of that into an error.
    """
    if on_corrupt not in {"raise", "skip"}:
        raise ValueError(f'on_corrupt is {on_corrupt!r}; it can be "raise" or "skip"')
    if max_corrupt is not None and on_corrupt != "skip":
        raise ValueError('max_corrupt counts what is left out, so it needs on_corrupt="skip"')
    ledger = Ledger(max_corrupt)
    shards = find_shards(paths, compression)
    if features is bytes:
        wanted = None
    elif features is None:
        wanted = infer_from(shards)
    else:
        wanted = resolve(features)  # type: ignore[arg-type]
    return Stream(Records(RecordSet(shards, wanted, on_corrupt, ledger)))


@dataclass(frozen=True, slots=True)
class Records(Stage):
    """The records of a set of shards, in file order."""

    records: RecordSet

    def elements(self) -> Iterator[Any]:
        for columns in self.records.in_file_order(_AT_A_TIME):
            yield from rows(columns)

    def batches(self, size: int, *, drop_remainder: bool) -> Iterator[Any]:
        return self.records.in_file_order(size, drop_remainder=drop_remainder)

    def length(self) -> int:
        return self.records.count()

    def damages(self) -> list[Damage]:
        return list(self.records.ledger)

    def __repr__(self) -> str:
        return f"{len(self.records.shards):,} shards, {self.records.features or bytes}"


def rows(columns: Columns) -> Iterator[Any]:
    """Yield the records of a batch one by one."""
    if isinstance(columns, BytesColumn):
        yield from columns
        return
    count = len(next(iter(columns.values())))
    for at in range(count):
        yield {name: row(column, at) for name, column in columns.items()}
