"""Some elements of a stream on their way, with what is needed to go on behind any of them."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anybatch.stream.structure import (
    KindsDiffer,
    Structure,
    as_columns,
    bytes_of,
    joined,
    rows_at,
    rows_between,
)

NUMBER_BITS = 48
"""A record's number is that within its source; above these bits stands which of several sources that is."""

State: TypeAlias = Any
"""JSON-able: where a stage is to go on. None: at its beginning."""

Stamp: TypeAlias = Callable[[int], State]
"""The state that lies behind a given row."""

Epochs: TypeAlias = int | NDArray[np.int64]
"""One epoch for all records, or one for each."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows as columns; or, behind `batch`, one whole batch as a single row.

    `numbers` tell the records apart: what is random depends on them and not on who reads them where.
    A chunk that comes by position was to have `asked` rows, has fewer where records are damaged, and may
    be a part of a batch, the last one if it `ends_batch`.
    """

    value: Structure
    rows: int
    numbers: NDArray[np.int64]
    epoch: Epochs
    stamp: Stamp
    whole: bool = False
    asked: int = -1
    ends_batch: bool = True

    def cut(self, start: int, stop: int) -> "Chunk":
        """Return the rows `start..stop`, sharing the memory of all."""
        start, stop = min(start, self.rows), min(stop, self.rows)
        if (start, stop) == (0, self.rows):
            return self
        return Chunk(
            value=self.value if self.whole else rows_between(self.value, start, stop),
            rows=stop - start,
            numbers=self.numbers[start:stop],
            epoch=epochs_at(self.epoch, slice(start, stop)),
            stamp=_behind(self.stamp, start),
            whole=self.whole,
        )

    def copied(self) -> "Chunk":
        """Return the same rows in memory of their own."""
        return self if self.whole else self.with_value(rows_at(self.value, np.arange(self.rows)))

    @property
    def nbytes(self) -> int:
        """The memory its rows take."""
        return bytes_of(self.value)

    def with_value(self, value: Structure) -> "Chunk":
        """Return the same rows with something else in them."""
        return replace(self, value=value)

    def stamped(self, change: Callable[[int, State], State]) -> "Chunk":
        """Return the chunk with every state wrapped: `change(row, state)`."""
        stamp = self.stamp
        return replace(self, stamp=lambda row: change(row, stamp(row)))


def wrapping(name: str, value: int) -> Callable[[int, State], State]:
    """Return the change that puts a state of the parent beside one number of one's own."""
    return lambda _row, at: {name: value, "parent": at}


def counting(name: str, before: int) -> Callable[[int, State], State]:
    """Return the same with how many rows have been passed."""
    return lambda row, at: {name: before + row + 1, "parent": at}


def _behind(stamp: Stamp, start: int) -> Stamp:
    return lambda row: stamp(row + start)


def close(chunks: Iterable[Any]) -> None:
    """End what makes chunks, now and not when the last reference to it is gone."""
    if isinstance(chunks, Generator):
        chunks.close()


def epochs_at(epochs: Epochs, rows: Any) -> Epochs:
    """Return the epochs of some of the records."""
    return epochs if isinstance(epochs, int) else epochs[rows]


def epochs_of(parts: list[tuple[Epochs, int]]) -> Epochs:
    """Return the epochs of records one behind the other: so many of this one, so many of that."""
    first = parts[0][0]
    if all(isinstance(epochs, int) and epochs == first for epochs, _ in parts):
        return first
    return np.concatenate([np.broadcast_to(epochs, count) for epochs, count in parts])


def one_chunk(parts: list[Chunk]) -> Chunk:
    """Return the rows of several chunks as one batch; its state lies behind the last of them."""
    last = parts[-1]
    several = len(parts) > 1
    # the state alone: who holds on to it should not hold on to the records
    stamp, at = last.stamp, last.rows - 1
    return Chunk(
        value=_columns_of(parts),
        rows=1,
        numbers=np.concatenate([part.numbers for part in parts]) if several else last.numbers,
        epoch=epochs_of([(part.epoch, len(part.numbers)) for part in parts]) if several else last.epoch,
        stamp=lambda _row: stamp(at),
        whole=True,
    )


def _columns_of(parts: list[Chunk]) -> Structure:
    try:
        return as_columns(joined([part.value for part in parts]))
    except KindsDiffer as differ:
        by_part = len(differ.each) == len(parts)
        numbers = np.concatenate([part.numbers[:1] if by_part else part.numbers for part in parts])
        streams = (numbers >> NUMBER_BITS).tolist()
        # one stream has no number worth telling
        if len(streams) != len(differ.each) or not any(streams):
            raise
        raise differ.in_streams(streams) from None
