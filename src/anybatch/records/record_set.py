"""Shards with what to take from them: opened, numbered, read in batches."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from anybatch._native import Batch, Index, Reader, Schema
from anybatch.errors import CorruptRecord, Damage, NothingToRead
from anybatch.records.assemble import Assembler, assemble, assembler
from anybatch.records.columns import BytesColumn, Column, PaddedColumn
from anybatch.records.dtypes import BYTES
from anybatch.records.features import Bytes, Feature, native_fields
from anybatch.records.index import (
    Progress,
    bad_numbers,
    build_index,
    keep_index,
    load_indexes,
    load_or_build_all,
)
from anybatch.records.ledger import Ledger
from anybatch.records.reading import Bounds, Reading
from anybatch.records.shards import Shard
from anybatch.records.threads import usable_cores

Columns: TypeAlias = dict[str, Column] | BytesColumn
"""One batch: a column per feature, or the records' bytes as they are."""

Order: TypeAlias = list[tuple[str, list[int]]]
"""Operations on record numbers, as the native reader takes them: ("shuffle", [seed, epoch]) and so on."""

_UNKNOWN_ROW_BYTES = 1024

_log = logging.getLogger("anybatch")


@dataclass(frozen=True)
class RecordSet:
    """Record shards and the features to take from them; `features=None`: each record's bytes."""

    shards: tuple[Shard, ...]
    features: Mapping[str, Feature] | None = None
    on_corrupt: str = "raise"
    ledger: Ledger = field(default_factory=Ledger, compare=False)

    def __reduce__(self) -> Any:
        # without what is made from the features on the way, which is native
        return RecordSet, (self.shards, self.features, self.on_corrupt, self.ledger)

    @cached_property
    def schema(self) -> Schema | None:
        """The features as the native decoder takes them."""
        return None if self.features is None else Schema(native_fields(self.features))

    @cached_property
    def _made(self) -> list[tuple[str, Assembler]]:
        return [(name, assembler(feature, name)) for name, feature in (self.features or {}).items()]

    def row_bytes(self) -> int:
        """Return about how many bytes one record takes when it is decoded; exact where sizes are fixed."""
        if self.features is None:
            return _UNKNOWN_ROW_BYTES
        fields = native_fields(self.features)
        return 16 + sum(_column_bytes(form, dtype, count) for _, _, form, dtype, count, _, _ in fields)

    def indexes(self, progress: Progress | None = None) -> list[Index]:
        """Return every shard's index, made where there is none. Damage they know of is raised or noted."""
        indexes = load_or_build_all(self.shards, progress=progress)
        self._note_known(indexes)
        self._check_empty(indexes)
        return indexes

    def count(self) -> int:
        """Return how many records there are, without those known to be damaged."""
        return sum(index.records - index.bad_records for index in self.indexes())

    def left_out(self) -> NDArray[np.int64]:
        """Return the numbers of the records that are known to be damaged and so never come, in order."""
        found, first = [], 0
        for index in self.indexes():
            found += [first + number for number in bad_numbers(index)]
            first += index.records
        return np.array(found, np.int64)

    def in_file_order(self, batch_size: int) -> Iterator[Columns]:
        """Yield batches as the records lie. Shards without an index are walked, and have one afterwards."""
        batches = self.native_in_file_order(batch_size)
        return (_padded(self.columns(batch)) for batch in batches if batch.rows)

    def native_in_file_order(
        self,
        batch_size: int,
        bounds: Bounds = Bounds(),  # noqa: B008 - it never changes
    ) -> Iterator[Batch]:
        """Yield what `in_file_order` yields as the native module has it."""
        known = load_indexes(self.shards)
        self._note_known(known)
        # with every index at hand nobody has to walk: places are found on all threads
        order: Order | None = None if None in known or self._compressed else []
        reading = self._reading(known, batch_size, order, bounds)
        with closing(reading):
            for batch in self._noted(reading):
                known = self._learn(reading, known)
                yield batch
            known = self._learn(reading, known)
        self._check_empty(known)
        self.ledger.judge(sum(index.records for index in known if index is not None))

    def native_ordered(
        self,
        batch_size: int,
        order: Order,
        bounds: Bounds = Bounds(),  # noqa: B008
        *,
        start: int = 0,
        indexes: Sequence[Index] | None = None,
    ) -> Iterator[Batch]:
        """Yield batches of records by number, from position `start` of the given order on.

        `indexes`: every shard's, if whoever asks has them at hand.
        """
        if indexes is None:
            indexes = self.indexes()
        reading = self._reading(indexes, batch_size, order, bounds, start=start)
        with closing(reading):
            yield from self._noted(reading, sum(index.records for index in indexes))

    def _reading(
        self,
        indexes: Iterable[Index | None],
        batch_size: int,
        order: Order | None,
        bounds: Bounds,
        *,
        start: int = 0,
    ) -> Reading:
        threads = bounds.threads or usable_cores()
        reader = Reader(
            [
                (shard.path, shard.compression, index)
                for shard, index in zip(self.shards, indexes, strict=True)
            ],
            self.schema,
            batch=batch_size,
            most=bounds.most or batch_size,
            drop_remainder=False,
            on_corrupt=self.on_corrupt,
            order=order,
            start=start,
            threads=threads,
            depth=threads + 2,
            limit_bytes=bounds.limit_bytes,
            most_depth=bounds.ahead,
            cached_bytes=bounds.cached_bytes,
            swept_bytes=bounds.swept_bytes,
        )
        return Reading(reader, bounds.meter)

    def _noted(self, reading: Reading, records: int | None = None) -> Iterator[Batch]:
        """Yield the batches, with damage noted and, once all are numbered, judged. One may have no rows."""
        for batch in self._batches(reading):
            if batch.damaged:
                met = ((self.shards[shard].path, at, size, why) for shard, at, size, why in batch.damaged)
                self.ledger.add(met)
                if records is not None:
                    self.ledger.judge(records)
            yield batch

    def _batches(self, reading: Reading) -> Iterator[Batch]:
        try:
            yield from reading.batches()
        except CorruptRecord as error:
            if error.offset == 0:
                self._refuse_strangers(error.file)
            raise

    def _refuse_strangers(self, file: str) -> None:
        """Raise `NotRecords` for a file that is no shard at all: it is not damaged, it was never meant."""
        for shard in self.shards:
            if shard.path == file:
                build_index(shard)

    def columns(self, batch: Batch) -> Columns:
        """Return a native batch as columns, without copying. Lists that will be padded are not padded yet."""
        rows, columns = batch.rows, batch.columns
        if self.features is None:
            return cast(BytesColumn, assemble(Bytes(), rows, columns[0]))
        return {name: made(rows, column) for (name, made), column in zip(self._made, columns, strict=True)}

    @property
    def _compressed(self) -> bool:
        return any(shard.compression for shard in self.shards)

    def _learn(self, reading: Reading, known: list[Index | None]) -> list[Index | None]:
        for number, index in reading.learnt():
            keep_index(self.shards[number], index)
            known = [*known[:number], index, *known[number + 1 :]]
        return known

    def _note_known(self, indexes: Iterable[Index | None]) -> None:
        known = [
            (shard, index) for shard, index in zip(self.shards, indexes, strict=True) if index is not None
        ]
        damages: list[Damage] = [(shard.path, *where) for shard, index in known for where in index.damaged]
        if damages and self.on_corrupt == "raise":
            raise CorruptRecord(*damages[0])
        self.ledger.add(damages)
        if len(known) == len(self.shards):
            self.ledger.judge(sum(index.records for _, index in known))

    def _check_empty(self, indexes: Iterable[Index | None]) -> None:
        empty = [
            shard.path
            for shard, index in zip(self.shards, indexes, strict=True)
            if index is not None and index.records == 0
        ]
        if len(empty) == len(self.shards):
            raise NothingToRead(empty)
        for path in empty:
            _log.info("%s holds no records", path)


def _padded(columns: Columns) -> Columns:
    if isinstance(columns, BytesColumn):
        return columns
    return {name: one.as_array() if isinstance(one, PaddedColumn) else one for name, one in columns.items()}


def _column_bytes(form: str, dtype: str, count: int) -> int:
    if form == "ragged" or dtype == BYTES:
        return _UNKNOWN_ROW_BYTES
    return count * np.dtype(dtype).itemsize
