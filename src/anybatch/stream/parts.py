"""Batches part by part, so that none ever has to exist whole."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from anybatch.errors import AnybatchError
from anybatch.stream.batch import Batch
from anybatch.stream.chunk import Chunk, State, close, epochs_at, wrapping
from anybatch.stream.epoch import Epoch
from anybatch.stream.iterator import Resumable
from anybatch.stream.limits import LimitMemory, Prefetch
from anybatch.stream.map import Map, RandomMap
from anybatch.stream.order import addressed, run_map
from anybatch.stream.repeat import Repeat
from anybatch.stream.run import Run
from anybatch.stream.slices import Slice
from anybatch.stream.split import even_parts
from anybatch.stream.stage import Operation, Stage
from anybatch.stream.structure import as_columns, leaves, rows_at, rows_between
from anybatch.stream.supervised import Supervised


class PartIterator(Resumable, Iterator[tuple[Any, bool]]):
    """The parts of every batch, one by one, with True beside the last of each batch.

    The value is None where all that is left of a batch is damaged. States are taken between batches, and
    are those of the stream's own iterator.
    """

    def __init__(self, stage: Stage, run: Run, most: int) -> None:
        super().__init__(stage, run)
        self._most = most

    def __next__(self) -> tuple[Any, bool]:
        self._check_process()
        part = self._next_chunk()
        if part.ends_batch:
            self._passed = (part.stamp, part.rows - 1)
        return (as_columns(part.value) if part.rows else None), part.ends_batch

    def _open(self, state: State) -> Iterator[Chunk]:
        return parts_of(self._stage, self._run, state, self._most)


def parts_of(stage: Stage, run: Run, state: State, most: int) -> Iterator[Chunk]:
    """Yield the parts of a stage's batches, none of more than `most` records."""
    match stage:
        case Batch() if stage.comes_in_parts:
            return stage.parts(run, state, most)
        case Operation() if stage.parent.batched:
            return _operated(stage, run, state, most)
    return _cut(stage.open(run, state), most)


def _operated(stage: Operation, run: Run, state: State, most: int) -> Iterator[Chunk]:
    def opened(below: Run, at: State) -> Iterator[Chunk]:
        return parts_of(stage.parent, below, at, most)

    match stage:
        case LimitMemory():
            return opened(run.limited(stage.limit_bytes), state)
        case Epoch():
            return opened(run.at_epoch(stage.number), state)
        case Prefetch():
            # whoever reads works ahead of its own accord
            return opened(run, state)
        case Repeat():
            return stage.repeated(opened, run, state)
        case Slice() if addressed(stage) is None:
            return _counted(stage, opened, run, state)
        case Map(columnwise=True) | RandomMap(columnwise=True):
            return run_map(stage, run, lambda below: opened(below, state), stage.parent.weight)
        case Supervised():
            return _supervised(stage, opened, run, state, most)
    return _cut(stage.open(run, state), most)


def _counted(
    stage: Slice, opened: Callable[[Run, State], Iterator[Chunk]], run: Run, state: State
) -> Iterator[Chunk]:
    passed = state["passed"] if state else 0
    if stage.ends_at(passed):
        return
    for part in opened(run, state["parent"] if state else None):
        if stage.wants_one(passed):
            yield part.stamped(wrapping("passed", passed + 1))
        passed += part.ends_batch
        if stage.ends_at(passed):
            return


def _supervised(
    stage: Supervised, opened: Callable[[Run, State], Iterator[Chunk]], run: Run, state: State, most: int
) -> Iterator[Chunk]:
    """Yield parts as tuples. Lists are padded to the longest of their batch, which then has to be whole."""
    parts, begins = opened(run, state), True
    for part in parts:
        if part.rows and stage.pads(part):
            close(parts)
            if not begins:
                raise LateLists(stage.described())
            yield from _padded(stage, run, state, most)
            return
        yield stage.change(part) if part.rows else part
        begins = part.ends_batch
        # behind the last whole batch: should lists come now, nothing comes twice
        state = part.stamp(part.rows - 1) if begins else state


class LateLists(AnybatchError, ValueError):
    """Lists in a batch whose first part had none: it has been given away by then."""

    def __init__(self, stage: str) -> None:
        super().__init__(stage)
        self.stage = stage

    def __str__(self) -> str:
        return (
            f"`{self.stage}` pads lists to the longest of their batch, and of one batch the first rows are "
            "equally long and later ones are not; let the function that makes them run record by record, "
            "before batch, or return rows of one length"
        )


def _padded(stage: Supervised, run: Run, state: State, most: int) -> Iterator[Chunk]:
    for whole in stage.parent.open(run, state):
        if stage.nests(whole):
            # lists in lists: the longest of each kind may be in any row
            yield from _cut(iter([stage.change(whole)]), most)
            continue
        lengths = stage.lengths(whole)
        for part in _cut(iter([whole]), most):
            yield stage.padded(part, lengths)


def _cut(batches: Iterator[Chunk], most: int) -> Iterator[Chunk]:
    """Yield whole batches in even parts, each in memory of its own."""
    for batch in batches:
        rows = len(next(iter(leaves(batch.value))))
        sizes = even_parts(rows, most)
        start = 0
        for at, size in enumerate(sizes):
            value = batch.value if len(sizes) == 1 else _copied(batch.value, start, start + size)
            # a function over the whole batch may have made other rows of it, which have no numbers
            own = slice(start, start + size) if rows == len(batch.numbers) else slice(None)
            stamp = batch.stamp
            yield replace(
                batch,
                value=value,
                rows=size,
                numbers=batch.numbers[own],
                epoch=epochs_at(batch.epoch, own),
                stamp=lambda _row, stamp=stamp: stamp(0),  # type: ignore[misc]
                whole=False,
                ends_batch=at == len(sizes) - 1,
            )
            start += size


def _copied(value: Any, start: int, stop: int) -> Any:
    # a slice begins anywhere in memory, which frameworks do not take
    cut = rows_between(value, start, stop)
    return rows_at(cut, range(stop - start))
