"""One epoch after the other."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

from anybatch.stream.chunk import Chunk, State, wrapping
from anybatch.stream.run import Run
from anybatch.stream.stage import Endless, Operation


@dataclass(frozen=True, slots=True)
class Repeat(Operation):
    """The parent `times` times over, each time as the next epoch orders it; None: for ever."""

    times: int | None

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        return self.repeated(self.parent.open, run, state)

    def repeated(
        self, opened: Callable[[Run, State], Iterator[Chunk]], run: Run, state: State
    ) -> Iterator[Chunk]:
        """Yield what `opened` gives for one epoch after the other."""
        first = state["epoch"] if state else 0
        for epoch in count(first) if self.times is None else range(first, self.times):
            base = run.epoch * (self.times or 0) + (run.epoch if self.times is None else 0)
            inner = state["parent"] if state and epoch == first else None
            some = False
            for chunk in opened(run.at_epoch(base + epoch), inner):
                some = True
                yield chunk.stamped(wrapping("epoch", epoch))
            if not some and inner is None and self.times is None:
                return

    def length(self) -> int:
        if self.times is None:
            with suppress(TypeError):
                if not self.parent.length():
                    return 0
            raise Endless("a stream that repeats for ever has no length")
        return self.parent.length() * self.times if self.times else 0

    def described(self) -> str:
        return f"repeat({'' if self.times is None else self.times})"
