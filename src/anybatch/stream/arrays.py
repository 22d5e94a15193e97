"""Streams over arrays in memory."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from anybatch._native import Order
from anybatch.errors import Damage
from anybatch.records import BytesColumn, Column, RaggedColumn, aligned_copy, int64s
from anybatch.stream.chunk import Chunk, Stamp, State
from anybatch.stream.contents import Contents
from anybatch.stream.layout import named_leaves
from anybatch.stream.order import Addressed, Numbers, Step, native_steps
from anybatch.stream.run import Run
from anybatch.stream.stage import SOURCE_WEIGHT, Stage
from anybatch.stream.stream import Stream
from anybatch.stream.structure import Structure, bytes_of, leaves, mapped, row_count, rows_at

_KEEP_TOGETHER = frozenset({"skip", "take"})
"""Changes of order behind which rows that follow each other lie side by side."""


def from_arrays(arrays: Any) -> Stream:
    """Return a stream over arrays of equal length: one array, a tuple or a mapping; it yields the same.

    >>> [len(x) for x, y in from_arrays((np.zeros((5, 2)), np.arange(5))).batch(2)]
    [2, 2, 1]
    """
    arrays = mapped(_as_column, arrays)
    if not list(leaves(arrays)) or any(
        isinstance(one, np.ndarray) and not one.ndim for one in leaves(arrays)
    ):
        raise ValueError("a stream needs at least one array, and each needs rows: a first dimension")
    return Stream(Arrays(arrays, row_count(arrays)))


def _as_column(array: Any) -> Column:
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(
            f"an array has a mask, which would be lost, with {int(np.ma.getmaskarray(array).sum()):,} of "
            f"{array.size:,} values under it; pass array.filled(value), or data and mask as two arrays"
        )
    return array if isinstance(array, BytesColumn | RaggedColumn) else np.asarray(array)


@dataclass(frozen=True, slots=True, eq=False)
class Arrays(Stage):
    """Rows of arrays, copied a chunk at a time: functions and consumers may write into what they get."""

    arrays: Structure
    rows: int

    @property
    def numbered(self) -> bool:
        return True

    def records(self) -> int:
        return self.rows

    def left_out(self) -> Numbers:
        return np.empty(0, np.int64)

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        return Addressed(self).open(run, state)

    def open_in(self, run: Run, steps: tuple[Step, ...], start: int) -> Iterator[Chunk]:
        order = Order(self.rows, native_steps(steps, run.epoch, self.mean_bytes))
        meter = run.meters.meter(self.described(), run.limit_bytes)
        row_bytes, together = self.mean_bytes(), all(name in _KEEP_TOGETHER for name, _ in steps)
        for first, last, ends_batch in _parts(start, len(order), run, row_bytes):
            numbers = int64s(order.records(first, last))
            meter.peak_bytes = max(meter.peak_bytes, len(numbers) * row_bytes)
            meter.elements += len(numbers)
            yield Chunk(
                value=self._copied(numbers, together=together),
                rows=len(numbers),
                numbers=numbers,
                epoch=run.epoch,
                stamp=_positions_from(first),
                asked=len(numbers),
                ends_batch=ends_batch,
            )

    def _copied(self, numbers: Any, *, together: bool) -> Structure:
        if not together:
            return rows_at(self.arrays, numbers)
        first, last = int(numbers[0]), int(numbers[-1])
        return mapped(lambda column: _rows_between(column, first, last + 1), self.arrays)

    def mean_bytes(self) -> int:
        return bytes_of(self.arrays) // max(1, self.rows)

    def length(self) -> int:
        return self.rows

    @property
    def batched(self) -> bool:
        return False

    @property
    def weight(self) -> int:
        return SOURCE_WEIGHT

    def damages(self) -> list[Damage]:
        return []

    def contents(self) -> Contents:
        # not their values: those that are computed anew may differ in the last bit
        columns = ", ".join(f"{name} {_kind(column)}".strip() for name, column in named_leaves(self.arrays))
        told = f"arrays of {self.rows:,} rows ({columns})"
        return Contents(told, hashlib.sha256(told.encode(errors="surrogatepass")).hexdigest())

    def described(self) -> str:
        return f"from_arrays ({self.rows:,} rows)"


def _rows_between(column: Column, start: int, stop: int) -> Column:
    if isinstance(column, np.ndarray):
        return aligned_copy(column[start:stop])
    return column.take(np.arange(start, stop))


def _kind(column: Column) -> str:
    if isinstance(column, np.ndarray):
        return f"{column.dtype} of shape {column.shape[1:]}" if column.ndim > 1 else str(column.dtype)
    return "bytes" if isinstance(column, BytesColumn) else f"lists of {_kind(column.values)}"


def _positions_from(first: int) -> Stamp:
    return lambda row: {"position": first + row + 1}


def _parts(start: int, end: int, run: Run, row_bytes: int) -> Iterator[tuple[int, int, bool]]:
    """Yield (first, behind, ends a batch): batches of equal size, cut into parts of two sizes at most."""
    most = min(run.most_rows, max(1, run.chunk_bytes // max(1, row_bytes)))
    for first in range(start, end, run.rows):
        size = min(run.rows, end - first)
        count = -(-size // most)
        cuts = [first + part * (size // count) + min(part, size % count) for part in range(count + 1)]
        for part in range(count):
            yield cuts[part], cuts[part + 1], part == count - 1
