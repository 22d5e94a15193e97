"""Only the elements that a function wants."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anybatch.stream.chunk import Chunk, State
from anybatch.stream.functions import calling
from anybatch.stream.run import Run
from anybatch.stream.stage import Operation
from anybatch.stream.structure import records, rows_at


@dataclass(frozen=True, slots=True)
class Filter(Operation):
    """The elements for which `wants` is true. Positions still count what was read, not what was kept."""

    wants: Callable[[Any], Any]

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        for chunk in self.parent.open(run, state):
            with calling("filter", self.wants, chunk):
                elements = [chunk.value] if chunk.whole else records(chunk.value)
                mask = np.fromiter((bool(self.wants(one)) for one in elements), np.bool_, chunk.rows)
            wanted = kept(chunk, mask)
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
    rows = np.flatnonzero(mask)
    return Chunk(
        value=chunk.value if chunk.whole else rows_at(chunk.value, rows),
        rows=len(rows),
        numbers=chunk.numbers[rows] if not chunk.whole else chunk.numbers,
        epoch=chunk.epoch,
        stamp=lambda row: chunk.stamp(int(rows[row])),
        whole=chunk.whole,
    )
