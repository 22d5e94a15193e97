"""Every record exactly once, in an order that depends on the seed and the epoch alone."""

from collections.abc import Iterator
from dataclasses import dataclass

from anybatch.stream.chunk import Chunk, State
from anybatch.stream.order import Addressed, Reordered, Step, addressed
from anybatch.stream.run import Run


@dataclass(frozen=True, slots=True)
class Shuffle(Reordered):
    """An exact shuffle of all records, computed and not buffered."""

    seed: int

    def __post_init__(self) -> None:
        self._below()

    def step(self) -> Step:
        return ("shuffle", (self.seed,))

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        return self._below().then(self.step()).open(run, state)

    def _below(self) -> Addressed:
        below = addressed(self.parent)
        if below is None:
            what = self.parent.described()
            raise ValueError(
                f"shuffle needs records that have numbers, and behind `{what}` they have none; put it before"
            )
        return below

    def described(self) -> str:
        return f"shuffle(seed={self.seed})"
