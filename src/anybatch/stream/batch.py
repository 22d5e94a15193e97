"""Batches of so many records."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from anybatch.errors import DoesNotFit
from anybatch.records import Padded
from anybatch.stream.chunk import Chunk, State, one_chunk
from anybatch.stream.layout import named_leaves
from anybatch.stream.lifted import every_stage
from anybatch.stream.meters import Meter
from anybatch.stream.order import Addressed, Source, addressed
from anybatch.stream.run import Run
from anybatch.stream.stage import HOLDING_WEIGHT, Operation
from anybatch.stream.structure import KindsDiffer, innermost, padded, padded_bytes


@dataclass(frozen=True, slots=True)
class Batch(Operation):
    """`size` records at a time, as columns; the last ones may be fewer, unless those are dropped.

    Where positions are known a batch is a range of them: a damaged record is missing from its own batch,
    and shifts no other. Elsewhere a batch is filled with whatever comes next.
    """

    size: int
    drop_remainder: bool

    def __post_init__(self) -> None:
        if self.parent.batched:
            raise ValueError("the stream is batched already; batch once")

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        share, below, own_weight = run.limit_bytes, run, self._own_weight
        if own_weight:
            share, below = run.share(own_weight, self.parent.weight, chunks=2, reserved=self.reserved_bytes)
        meter = run.meters.meter(self.described(), share)
        types: dict[str, Any] = {}
        for parts in self._groups(below.by(self.size), state):
            if own_weight or len(parts) > 1:
                _check_room(parts, meter)
            meter.elements += 1
            batch = _padded(one_chunk(parts), meter)
            if own_weight:
                _check_types(batch, types)
            yield batch

    @property
    def comes_in_parts(self) -> bool:
        """Whether a batch need not be put together before its first part is known to be one.

        Rows that the reader pads are as long as the longest that are read together.
        """
        return self._by_position and not self.drop_remainder and not self._reads_padded

    @property
    def _reads_padded(self) -> bool:
        read = [getattr(stage, "record_set", None) for stage in every_stage(self.parent)]
        features = [one.features.values() for one in read if one is not None and one.features is not None]
        return any(isinstance(feature, Padded) for several in features for feature in several)

    def parts(self, run: Run, state: State, most: int) -> Iterator[Chunk]:
        """Yield batches part by part, none of more than `most` records."""
        return self.parent.open(run.by(self.size, most=most), state)

    def _groups(self, run: Run, state: State) -> Iterator[list[Chunk]]:
        chunks = self.parent.open(run, state)
        if self._by_position:
            groups = _by_position(chunks, self.size, state["position"] if state else 0)
        else:
            groups = _by_count(chunks, self.size)
        for parts in groups:
            # whoever drops the rest wants equal batches: one that lacks a damaged record is none
            if not self.drop_remainder or sum(part.rows for part in parts) == self.size:
                yield parts

    @property
    def _by_position(self) -> bool:
        return addressed(self.parent) is not None or isinstance(self.parent, Source)

    @property
    def _own_weight(self) -> int:
        # straight from the source a batch is read whole; behind a function it is put together from parts
        below = addressed(self.parent)
        return 0 if self._by_position and (below is None or not below.maps) else 2 * HOLDING_WEIGHT

    @property
    def weight(self) -> int:
        return self.parent.weight + self._own_weight

    def length(self) -> int:
        below = addressed(self.parent)
        if below is None and isinstance(self.parent, Source):
            below = Addressed(self.parent)
        if below is not None:
            return self._length_by_position(below)
        whole, rest = divmod(self.parent.length(), self.size)
        return whole + (rest > 0 and not self.drop_remainder)

    def _length_by_position(self, below: Addressed) -> int:
        """Return how many batches will come: some lack records, and of some none is left."""
        whole, rest = divmod(below.length(), self.size)
        sizes = {whole: rest} if rest else {}
        lacking, counts = np.unique(below.left_out() // self.size, return_counts=True)
        if self.drop_remainder:
            return whole - int(np.count_nonzero(lacking < whole))
        gone = sum(count == sizes.get(at, self.size) for at, count in zip(lacking, counts, strict=True))
        return whole + len(sizes) - int(gone)

    @property
    def batched(self) -> bool:
        return True

    def described(self) -> str:
        return f"batch({self.size}{', drop_remainder=True' * self.drop_remainder})"


def _by_position(chunks: Iterator[Chunk], size: int, start: int) -> Iterator[list[Chunk]]:
    """Yield the parts of each batch: a full range of positions, but for the last one.

    A part of which every record is damaged never comes, be it the last one of its batch.
    """
    parts: list[Chunk] = []
    end = start
    for chunk in chunks:
        behind = chunk.stamp(chunk.rows - 1)["position"]
        if parts and behind > end:
            yield parts
            parts = []
        end = max(end, start + -(-(behind - start) // size) * size)
        parts.append(chunk)
        if chunk.ends_batch:
            yield parts
            parts = []
    if parts:
        yield parts


def _by_count(chunks: Iterator[Chunk], size: int) -> Iterator[list[Chunk]]:
    """Yield the parts of each batch."""
    parts: list[Chunk] = []
    missing = size
    for chunk in chunks:
        start = 0
        while start < chunk.rows:
            part = chunk.cut(start, start + missing)
            parts.append(part)
            start, missing = start + part.rows, missing - part.rows
            if not missing:
                yield parts
                parts, missing = [], size
    if parts:
        # the rest of a chunk begins anywhere in its memory
        yield parts if len(parts) > 1 else [parts[0].copied()]


def _padded(batch: Chunk, meter: Meter) -> Chunk:
    """Return a batch whose lists are as long as the feature says: as the longest. Both are there a moment."""
    more = padded_bytes(batch.value)
    if more and batch.nbytes + more > meter.bound_bytes:
        raise DoesNotFit(meter.stage, batch.nbytes + more, meter.bound_bytes)
    meter.peak_bytes = max(meter.peak_bytes, batch.nbytes + more if more else 0)
    return batch.with_value(padded(batch.value))


def _check_types(batch: Chunk, known: dict[str, Any]) -> None:
    """Raise an error if a column that functions made is of another type than in the batches before."""
    for name, column in named_leaves(batch.value):
        values = innermost(column)
        # text is as long as it is, and what is empty has no type of its own
        if not isinstance(values, np.ndarray) or values.dtype.kind in "SU" or not values.size:
            continue
        before = known.setdefault(name, values.dtype)
        if values.dtype != before:
            told = (f"{before} in earlier batches", f"{values.dtype} in this one")
            raise KindsDiffer(name.strip("`"), (str(before), str(values.dtype)), told)


def _check_room(parts: list[Chunk], meter: Meter) -> None:
    """A batch of several parts is copied into one: for a moment it is there twice."""
    n_bytes = sum(part.nbytes for part in parts)
    needed = 2 * n_bytes if len(parts) > 1 else n_bytes
    if needed > meter.bound_bytes:
        raise DoesNotFit(meter.stage, needed, meter.bound_bytes)
    meter.peak_bytes = max(meter.peak_bytes, needed)
