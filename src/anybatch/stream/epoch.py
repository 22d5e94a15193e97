"""The stream as a given epoch orders it."""

from collections.abc import Iterator
from dataclasses import dataclass

from anybatch.stream.chunk import Chunk, State
from anybatch.stream.run import Run
from anybatch.stream.stage import Operation


@dataclass(frozen=True, slots=True)
class Epoch(Operation):
    """The parent in epoch `number`, whatever epoch is run."""

    number: int

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        return self.parent.open(run.at_epoch(self.number), state)

    def described(self) -> str:
        return f"epoch({self.number})"
