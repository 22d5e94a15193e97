"""Some of the elements: the first ones, all but the first, every so manieth."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anybatch.stream.chunk import Chunk, State, counting
from anybatch.stream.filter import kept
from anybatch.stream.order import Reordered, Step, addressed, length_of
from anybatch.stream.run import Run
from anybatch.stream.stage import Endless


class Slice(Reordered):
    """Elements chosen by their position: computed where positions are, else counted off."""

    __slots__ = ()

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        below = addressed(self.parent)
        if below is not None:
            return below.then(self.step()).open(run, state)
        return self._counted(run, state)

    def length(self) -> int:
        order = addressed(self)
        return length_of(self.parent.length(), (self.step(),)) if order is None else order.coming()

    def _counted(self, run: Run, state: State) -> Iterator[Chunk]:
        passed = state["passed"] if state else 0
        if self.ends_at(passed):
            return
        for chunk in self.parent.open(run, state["parent"] if state else None):
            positions = np.arange(passed, passed + chunk.rows)
            counted = chunk.stamped(counting("passed", passed))
            wanted = kept(counted, self.wants(positions))
            if wanted.rows:
                yield wanted
            passed += chunk.rows
            if self.ends_at(passed):
                return

    @abstractmethod
    def wants(self, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which positions are wanted."""

    def wants_one(self, position: int) -> bool:
        """Return whether one position is wanted."""
        return bool(self.wants(np.array([position]))[0])

    def ends_at(self, passed: int) -> bool:
        """Return whether nothing behind so many elements is wanted."""
        return False


@dataclass(frozen=True, slots=True)
class Take(Slice):
    """The first `count` elements."""

    count: int

    def step(self) -> Step:
        return ("take", (self.count,))

    def wants(self, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        return positions < self.count

    def ends_at(self, passed: int) -> bool:
        return passed >= self.count

    def length(self) -> int:
        if not self.count:
            return 0
        try:
            # not `super`: a class with slots is made anew, and is not the one that `super` knows
            return Slice.length(self)
        except Endless:
            return self.count

    def described(self) -> str:
        return f"take({self.count})"


@dataclass(frozen=True, slots=True)
class Skip(Slice):
    """All but the first `count` elements."""

    count: int

    def step(self) -> Step:
        return ("skip", (self.count,))

    def wants(self, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        return positions >= self.count

    def described(self) -> str:
        return f"skip({self.count})"


@dataclass(frozen=True, slots=True)
class Shard(Slice):
    """Every `count`-th element from `index` on."""

    count: int
    index: int

    def step(self) -> Step:
        return ("shard", (self.count, self.index))

    def wants(self, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.equal(positions % self.count, self.index)

    def described(self) -> str:
        return f"shard({self.count}, {self.index})"


@dataclass(frozen=True, slots=True)
class Dealt(Slice):
    """Of every `size` elements each `count`-th from `index` on: one worker's rows of every batch."""

    size: int
    count: int
    index: int

    def step(self) -> Step:
        return ("deal", (self.size, self.count, self.index))

    def wants(self, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.equal(positions % self.size % self.count, self.index)

    def described(self) -> str:
        return f"deal({self.size}, {self.count}, {self.index})"
