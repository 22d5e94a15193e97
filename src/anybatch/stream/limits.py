"""How much a stream may hold, and how far ahead it works."""

from collections.abc import Iterator
from dataclasses import dataclass

from anybatch.stream.ahead import prefetched
from anybatch.stream.chunk import Chunk, State
from anybatch.stream.order import OneToOne
from anybatch.stream.run import Run
from anybatch.stream.stage import HOLDING_WEIGHT

_AHEAD = 2


@dataclass(frozen=True, slots=True)
class LimitMemory(OneToOne):
    """A hard cap on the bytes that everything before it holds."""

    limit_bytes: int

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        return self.parent.open(run.limited(self.limit_bytes), state)

    def change(self, chunk: Chunk) -> Chunk:
        return chunk

    def described(self) -> str:
        return f"limit_memory({self.limit_bytes})"


@dataclass(frozen=True, slots=True)
class Prefetch(OneToOne):
    """Elements made ready while the consumer works; None: as many as serve and fit."""

    depth: int | None

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        depth = self.depth or _AHEAD
        share, below = run.share(HOLDING_WEIGHT, self.parent.weight, chunks=2)
        return prefetched(self.parent.open(below, state), depth, run.meters.meter(self.described(), share))

    @property
    def weight(self) -> int:
        return self.parent.weight + HOLDING_WEIGHT

    def change(self, chunk: Chunk) -> Chunk:
        return chunk

    def described(self) -> str:
        return f"prefetch({'' if self.depth is None else self.depth})"
