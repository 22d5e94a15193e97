"""Every record exactly once, in an order that depends on the seed and the epoch alone."""

from collections.abc import Iterator
from dataclasses import dataclass

from anybatch.stream.chunk import Chunk, State
from anybatch.stream.order import Addressed, Reordered, Step, addressed
from anybatch.stream.run import Run


@dataclass(frozen=True, slots=True)
class Shuffle(Reordered):
    """An exact shuffle of all records, computed and not buffered; with a window, block-wise.

    Unless it is made `anew` every epoch has the order of epoch 0.
    """

    seed: int
    window_bytes: int = 0
    anew: bool = True

    def __post_init__(self) -> None:
        self._below()

    def step(self) -> Step:
        if self.window_bytes:
            return ("window", (self.seed, self.anew, self.window_bytes))
        return ("shuffle", (self.seed, self.anew))

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        return self._below().then(self.step()).open(run, state)

    def _below(self) -> Addressed:
        below = addressed(self.parent)
        if below is None:
            what = self.parent.described()
            # whole batches have no order in windows either
            windows = "" if self.parent.batched else ', or in windows: shuffle(window="256MiB")'
            raise ValueError(
                f"an exact shuffle needs records that have numbers, and behind `{what}` they have none; "
                f"shuffle before it{windows}"
            )
        return below

    def described(self) -> str:
        window = f", window={self.window_bytes}" if self.window_bytes else ""
        return f"shuffle(seed={self.seed}{window}{once(self.anew)})"


def once(anew: bool) -> str:
    """Return how a shuffle says that it is not made anew."""
    return "" if anew else ", reshuffle_each_iteration=False"
