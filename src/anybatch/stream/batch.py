"""Batches of so many records."""

from collections.abc import Iterator
from dataclasses import dataclass

from anybatch.stream.chunk import Chunk, State, one_chunk
from anybatch.stream.run import Run
from anybatch.stream.stage import Operation


@dataclass(frozen=True, slots=True)
class Batch(Operation):
    """`size` records at a time, as columns; the last ones may be fewer."""

    size: int
    drop_remainder: bool

    def __post_init__(self) -> None:
        if self.parent.batched:
            raise ValueError("the stream is batched already; batch once")

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        parts: list[Chunk] = []
        missing = self.size
        for chunk in self.parent.open(run.by(self.size), state):
            rest = chunk
            while rest.rows:
                part = rest.cut(0, missing)
                rest = (
                    rest.cut(part.rows, rest.rows)
                    if part.rows < rest.rows
                    else rest.cut(rest.rows, rest.rows)
                )
                parts.append(part)
                missing -= part.rows
                if not missing:
                    yield one_chunk(parts)
                    parts, missing = [], self.size
        if parts and not self.drop_remainder:
            yield one_chunk(parts)

    def length(self) -> int:
        whole, rest = divmod(self.parent.length(), self.size)
        return whole + (rest > 0 and not self.drop_remainder)

    @property
    def batched(self) -> bool:
        return True

    def described(self) -> str:
        return f"batch({self.size}{', drop_remainder=True' * self.drop_remainder})"
