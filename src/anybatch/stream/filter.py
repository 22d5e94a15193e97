"""Only the elements that a function wants."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anybatch.stream.chunk import Chunk, State, epochs_at
from anybatch.stream.functions import made_of_each, taking
from anybatch.stream.run import Run
from anybatch.stream.stage import Operation
from anybatch.stream.structure import rows_at


@dataclass(frozen=True, slots=True)
class Filter(Operation):
    """The elements for which `wants` is true. Positions still count what was read, not what was kept."""

    wants: Callable[[Any], Any]

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        wants = taking(self.wants)
        for chunk in self.parent.open(run, state):
            mask = made_of_each("filter", self.wants, chunk, lambda one: bool(wants(one)))
            wanted = kept(chunk, np.array(mask, np.bool_))
            if wanted.rows:
                yield wanted

    def length(self) -> int:
        raise TypeError("how many elements a filter keeps is known only after reading them")

    def described(self) -> str:
        return f"filter({getattr(self.wants, '__name__', 'function')})"


def kept(chunk: Chunk, mask: NDArray[np.bool_]) -> Chunk:
    """Return the rows of a chunk that a mask marks, with the states that lie behind them."""
    if mask.all():
        return chunk
    rows, stamp = np.flatnonzero(mask), chunk.stamp
    return Chunk(
        value=chunk.value if chunk.whole else rows_at(chunk.value, rows),
        rows=len(rows),
        numbers=chunk.numbers[rows] if not chunk.whole else chunk.numbers,
        epoch=chunk.epoch if chunk.whole else epochs_at(chunk.epoch, rows),
        stamp=lambda row: stamp(int(rows[row])),
        whole=chunk.whole,
    )
