"""Streams over arrays in memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from anybatch._native import Order
from anybatch.errors import Damage
from anybatch.records import int64s
from anybatch.stream.chunk import Chunk, Stamp, State
from anybatch.stream.order import Step, native_steps
from anybatch.stream.run import Run
from anybatch.stream.stage import Stage
from anybatch.stream.stream import Stream
from anybatch.stream.structure import Structure, leaves, mapped, row_count, rows_at, rows_between


def from_arrays(arrays: Any) -> Stream:
    """Return a stream over arrays of equal length: one array, a tuple or a mapping; it yields the same.

    >>> [len(x) for x, y in from_arrays((np.zeros((5, 2)), np.arange(5))).batch(2)]
    [2, 2, 1]
    """
    arrays = mapped(np.asarray, arrays)
    if not list(leaves(arrays)) or any(array.ndim == 0 for array in leaves(arrays)):
        raise ValueError("a stream needs at least one array, and each needs rows: a first dimension")
    return Stream(Arrays(arrays, row_count(arrays)))


@dataclass(frozen=True, slots=True, eq=False)
class Arrays(Stage):
    """Rows of arrays. In order they are views: nothing is copied."""

    arrays: Structure
    rows: int

    @property
    def numbered(self) -> bool:
        return True

    def records(self) -> int:
        return self.rows

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        return self.open_in(run, (), state["position"] if state else 0)

    def open_in(self, run: Run, steps: tuple[Step, ...], start: int) -> Iterator[Chunk]:
        order = Order(self.rows, native_steps(steps, run.epoch))
        for first in range(start, len(order), run.rows):
            numbers = int64s(order.records(first, first + run.rows))
            yield Chunk(
                value=self._rows(numbers, in_order=not steps),
                rows=len(numbers),
                numbers=numbers,
                epoch=run.epoch,
                stamp=_positions_from(first),
            )

    def _rows(self, numbers: Any, *, in_order: bool) -> Structure:
        if in_order:
            return rows_between(self.arrays, int(numbers[0]), int(numbers[-1]) + 1)
        return rows_at(self.arrays, numbers)

    def length(self) -> int:
        return self.rows

    @property
    def batched(self) -> bool:
        return False

    def damages(self) -> list[Damage]:
        return []

    def described(self) -> str:
        return f"from_arrays ({self.rows:,} rows)"


def _positions_from(first: int) -> Stamp:
    return lambda row: {"position": first + row + 1}
