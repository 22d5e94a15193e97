"""One worker's rows of every batch, when several workers train together.

Rows of a batch are dealt out one by one: worker 0 of 3 gets the rows 0, 3, 6 …. Where the order of records is
arithmetic a worker reads its own rows alone; elsewhere it reads all of them and keeps its own. Either way
states are those of the whole stream, so that any number of workers can go on from them.
"""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from anybatch.errors import AnybatchError, AnybatchWarning
from anybatch.stream import Stream
from anybatch.stream.arrays import Arrays
from anybatch.stream.batch import Batch
from anybatch.stream.chunk import close
from anybatch.stream.declared import length_is_certain
from anybatch.stream.epoch import Epoch
from anybatch.stream.limits import LimitMemory, Prefetch
from anybatch.stream.map import Map, RandomMap
from anybatch.stream.order import addressed, rows_dealt
from anybatch.stream.parts import parts_of
from anybatch.stream.run import Run
from anybatch.stream.slices import Dealt, Take
from anybatch.stream.stage import Operation, Stage
from anybatch.stream.structure import row_count, rows_at
from anybatch.stream.supervised import Supervised
from anybatch.train.inputs import WHOLE, Part, Parts

_LOOKED_AT = 64
"""So many records tell whether rows have lengths of their own."""


class OutOfStep(AnybatchError, RuntimeError):
    """A worker's rows of a batch ended elsewhere than the batch."""

    def __init__(self, batch: int, position: int, expected: int) -> None:
        super().__init__(batch, position, expected)
        self.batch = batch
        self.position = position
        self.expected = expected

    def __str__(self) -> str:
        return (
            f"batch {self.batch:,} ends at position {self.expected:,} of this worker and reading stands at "
            f"{self.position:,}: all its records of a batch are damaged; `anybatch repair` leaves them out"
        )


@dataclass(frozen=True, slots=True)
class Slice:
    """Which rows of every batch are one worker's; `alone`: it can read them without those of the others."""

    index: int
    count: int
    alone: bool = False

    def rows_of(self, rows: int) -> int:
        """Return how many of so many rows of a batch are this worker's."""
        return rows_dealt(rows, self.count, self.index)

    def opened(self, stream: Stream, most: int, *, epoch: int) -> Parts:
        """Return this worker's rows of every batch, in parts of at most `most`."""
        return (_OwnRows if self.alone else _EveryRow)(stream, self, most, epoch)


def slice_of(stream: Stream, index: int, count: int) -> Slice:
    """Return how one of several workers reads a stream; says so where every one has to read all of it."""
    why = _why_not_alone(stream._stage)  # noqa: SLF001 - the stages are what decides
    if why and index == 0 and _costs(stream._stage):  # noqa: SLF001
        text = f"each of {count} workers reads all records and trains on its own ones: {why}"
        warnings.warn(text, AnybatchWarning, stacklevel=6)
    return Slice(index, count, alone=why is None)


class _OwnRows(Iterator[Part]):
    """Reads this worker's records and no others. Batches in which it has none come all the same."""

    def __init__(self, stream: Stream, share: Slice, most: int, epoch: int) -> None:
        stage = stream._stage  # noqa: SLF001
        batches = _batches_in(stage)
        self._whole = stream.parts(WHOLE, epoch=epoch, swept_bytes=0)
        self._own = Stream(_with_batches(stage, _dealt(batches, share))).parts(
            most, epoch=epoch, swept_bytes=0
        )
        self._share = share
        self._size = batches.size
        records = _records(batches)
        self._records = records - records % self._size * batches.drop_remainder
        self._done = 0
        self._epoch = epoch

    def __next__(self) -> Part:
        if not self._rows(self._done + 1) - self._rows(self._done):
            if self._done * self._size >= self._records:
                raise StopIteration
            self._done += 1
            return None, True
        value, last = next(self._own)
        if last:
            self._done += 1
            self._check()
        return value, last

    def _rows(self, batches: int) -> int:
        """Return how many rows this worker has in so many batches."""
        return self._own_position(self._position(batches))

    def _position(self, batches: int) -> int:
        return min(batches * self._size, self._records)

    def _own_position(self, position: int) -> int:
        """Return how many of the rows before a position are this worker's."""
        whole, rest = divmod(position, self._size)
        return whole * self._share.rows_of(self._size) + self._share.rows_of(rest)

    def _check(self) -> None:
        behind, expected = self._own.get_state()["at"]["position"], self._rows(self._done)
        if behind != expected:
            raise OutOfStep(self._done, behind, expected)

    def get_state(self) -> dict[str, Any]:
        place = {"position": self._position(self._done)}
        return {**self._whole.get_state(), "epoch": self._epoch, "at": place}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self._whole.set_state(state)
        self._epoch = state["epoch"]
        position = (state["at"] or {"position": 0})["position"]
        self._done = -(-position // self._size)
        place = {"position": self._own_position(position)}
        self._own.set_state({**self._own.get_state(), "epoch": self._epoch, "at": place})

    def close(self) -> None:
        self._own.close()


class _EveryRow(Iterator[Part]):
    """Reads all records, and keeps this worker's rows."""

    def __init__(self, stream: Stream, share: Slice, most: int, epoch: int) -> None:
        self._whole = stream.parts(min(WHOLE, most * share.count), epoch=epoch, swept_bytes=0)
        self._share = share
        self._seen = 0

    def __next__(self) -> Part:
        value, last = next(self._whole)
        rows = 0 if value is None else row_count(value)
        own = range((self._share.index - self._seen) % self._share.count, rows, self._share.count)
        self._seen = 0 if last else self._seen + rows
        return (rows_at(value, own) if own else None), last

    def get_state(self) -> dict[str, Any]:
        return self._whole.get_state()

    def set_state(self, state: Mapping[str, Any]) -> None:
        self._whole.set_state(state)

    def close(self) -> None:
        self._whole.close()


def _why_not_alone(stage: Stage) -> str | None:
    """Return why a worker cannot leave the other workers' records unread."""
    while not isinstance(stage, Batch):
        if not isinstance(stage, Operation) or not _by_row(stage):
            return f"`{stage.described()}` needs whole batches"
        stage = stage.parent
    if addressed(stage.parent) is None:
        return f"behind `{stage.parent.described()}` the place of a record is known only after reading"
    if stage.drop_remainder and not length_is_certain(stage):
        return f"`{stage.described()}` leaves out batches that lack a damaged record, of whichever worker"
    return None


def _costs(stage: Stage) -> bool:
    """Return whether it costs anything to read the records of others: those of arrays are there already."""
    while not isinstance(stage, Batch) and isinstance(stage, Operation):
        stage = stage.parent
    order = addressed(stage.parent) if isinstance(stage, Batch) else None
    return order is None or bool(order.maps) or not isinstance(order.source, Arrays)


def _by_row(stage: Operation) -> bool:
    """Return whether an operation behind batch treats every row by itself and leaves states as they are."""
    if isinstance(stage, Supervised):
        return not _pads(stage)
    columnwise = isinstance(stage, Map | RandomMap) and stage.columnwise
    return columnwise or isinstance(stage, LimitMemory | Prefetch | Epoch)


def _pads(stage: Supervised) -> bool:
    """Return whether rows are padded to the longest of their batch, which only the whole batch tells."""
    parts = parts_of(stage.parent, Run(), None, _LOOKED_AT)
    first = next((part for part in parts if part.rows), None)
    close(parts)
    return first is not None and stage.pads(first)


def _dealt(batches: Batch, share: Slice) -> Batch:
    """Return the batches of one worker: its share of each."""
    parent: Stage = batches.parent
    if batches.drop_remainder:
        parent = Take(parent, _records(batches) // batches.size * batches.size)
    own = Dealt(parent, batches.size, share.count, share.index)
    # whoever has no row of a batch is never asked for any
    return Batch(own, max(1, share.rows_of(batches.size)), drop_remainder=False)


def _with_batches(stage: Stage, batches: Batch) -> Stage:
    """Return the same stages over other batches."""
    if isinstance(stage, Batch):
        return batches
    above: Any = stage
    return replace(above, parent=_with_batches(above.parent, batches))  # type: ignore[no-any-return]


def _batches_in(stage: Stage) -> Batch:
    found: Any = stage
    while not isinstance(found, Batch):
        found = found.parent
    return found


def _records(batches: Batch) -> int:
    order: Any = addressed(batches.parent)
    return int(order.length())
