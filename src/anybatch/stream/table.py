"""Records that are kept as columns: any of them by its position."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anybatch._native import Order
from anybatch.errors import Damage
from anybatch.records import BytesColumn, Column, RaggedColumn, aligned_copy, aligned_rows, int64s
from anybatch.stream.ahead import in_order
from anybatch.stream.chunk import Chunk, Stamp
from anybatch.stream.layout import as_it_came
from anybatch.stream.meters import Meter
from anybatch.stream.order import Step, native_steps
from anybatch.stream.run import Run
from anybatch.stream.structure import Structure, mapped

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """Where each batch begins and ends among the rows, and among the numbers of its records."""

    numbers: Numbers
    row_bounds: Numbers
    number_bounds: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Columns, and where in them the record of each position lies.

    A row takes `row_bytes` here, and took `mean_bytes` where it comes from, which windows are counted in.
    `slots` give one more than the row of each position, 0 where a damaged record was left out; None: the
    position is the row. `numbers` are those that the records of the rows had; None: their positions.
    Of `batches`, if those were kept, positions are those of batches.
    """

    layouts: Structure
    columns: Structure
    rows: int
    positions: int
    row_bytes: int
    mean_bytes: int
    numbers: Numbers | None = None
    slots: Numbers | None = None
    batches: Batches | None = None
    damages: tuple[Damage, ...] = ()
    memory_bytes: int = 0

    def chunks(self, run: Run, steps: tuple[Step, ...], start: int, meter: Meter) -> Iterator[Chunk]:
        """Yield copies of the records in the order that the steps make, from position `start` on."""
        order = Order(self.positions, native_steps(steps, run.epoch, lambda: self.mean_bytes))
        if self.batches is not None:
            return self._whole(self.batches, order, run, start)
        places = self._places(order, run, start)
        if self.memory_bytes:
            return map(self._gathered, places)
        # where pages have to come from the disk, several threads wait for them at once
        return in_order(self._gathered, places, run.threads, meter)

    def _places(self, order: Order, run: Run, start: int) -> Iterator[Chunk]:
        """Yield chunks whose value is the rows that they are to be made of."""
        most = min(run.most_rows, max(1, run.chunk_bytes // max(1, self.row_bytes)))
        for first in range(start, len(order), run.rows):
            behind = min(first + run.rows, len(order))
            positions = int64s(order.records(first, behind))
            rows = positions if self.slots is None else self.slots[positions] - 1
            found = np.flatnonzero(rows >= 0) if self.rows != self.positions else np.arange(len(rows))
            whole = Chunk(rows, len(rows), positions, run.epoch, _behind(found, behind), asked=len(rows))
            yield from _parts(whole, first, found, most, even_none=run.in_parts)

    def _gathered(self, chunk: Chunk) -> Chunk:
        rows: Numbers = chunk.value
        numbers = chunk.numbers if self.numbers is None else self.numbers[rows]
        return replace(chunk, value=self._values(rows), numbers=numbers)

    def _values(self, rows: Numbers) -> Structure:
        return mapped(
            lambda column, layout: as_it_came(gathered(column, rows), layout), self.columns, self.layouts
        )

    def _whole(self, batches: Batches, order: Order, run: Run, start: int) -> Iterator[Chunk]:
        for position in range(start, len(order)):
            batch = int(int64s(order.records(position, position + 1))[0])
            yield Chunk(
                value=self._values(np.arange(*batches.row_bounds[batch : batch + 2])),
                rows=1,
                numbers=batches.numbers[slice(*batches.number_bounds[batch : batch + 2])].copy(),
                epoch=run.epoch,
                stamp=_behind(np.array([position]), position + 1),
                whole=True,
            )


def places(
    numbers: Numbers | None, row_bounds: Numbers | None, number_bounds: Numbers | None
) -> dict[str, Any]:
    """Return numbers and batches as a table takes them."""
    if numbers is None or row_bounds is None or number_bounds is None:
        return {"numbers": numbers}
    return {"batches": Batches(numbers, row_bounds, number_bounds)}


def gathered(column: Column, rows: Numbers) -> Column:
    """Return a copy of some rows in aligned memory of its own."""
    if isinstance(column, BytesColumn | RaggedColumn):
        return column.take(rows)
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and bool(np.all(np.diff(rows) == 1)):
        return aligned_copy(column[int(rows[0]) : int(rows[-1]) + 1])
    return aligned_rows(column, rows)


def _parts(batch: Chunk, first: int, found: Numbers, most: int, *, even_none: bool) -> Iterator[Chunk]:
    """Yield the rows that were found of a batch in parts of two sizes at most; the last part ends it.

    `even_none`: a batch of which nothing was found comes too, as a part without rows.
    """
    count = max(-(-len(found) // most), int(even_none))
    passed = 0
    for part in range(count):
        mine = found[_cut(len(found), part, count) : _cut(len(found), part + 1, count)]
        last = part == count - 1
        end = batch.asked if last else int(mine[-1]) + 1
        yield Chunk(
            value=batch.value[mine],
            rows=len(mine),
            numbers=batch.numbers[mine],
            epoch=batch.epoch,
            stamp=_behind(first + mine, first + end),
            asked=end - passed,
            ends_batch=last,
        )
        passed = end


def _cut(size: int, part: int, count: int) -> int:
    return part * (size // count) + min(part, size % count)


def _behind(positions: Any, end: int) -> Stamp:
    # records that were left out behind the last row are passed with it
    last = len(positions) - 1
    return lambda row: {"position": end if row == last else int(positions[row]) + 1}
