"""Several streams as one."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anybatch.errors import Damage
from anybatch.records import give_way
from anybatch.stream.chunk import NUMBER_BITS, Chunk, State, close, epochs_at, epochs_of, wrapping
from anybatch.stream.run import Run
from anybatch.stream.seeds import seeds_of
from anybatch.stream.stage import HOLDING_WEIGHT, Stage
from anybatch.stream.structure import joined, rows_at


class Several(Stage):
    """A stage with several parents, all of records or all of batches."""

    __slots__ = ()
    parents: tuple[Stage, ...]

    def length(self) -> int:
        return sum(parent.length() for parent in self.parents)

    @property
    def batched(self) -> bool:
        return self.parents[0].batched

    @property
    def weight(self) -> int:
        return sum(parent.weight for parent in self.parents) + HOLDING_WEIGHT

    def damages(self) -> list[Damage]:
        return [damage for parent in self.parents for damage in parent.damages()]

    def _told_apart(self, which: int, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yield the chunks of one parent with numbers that no other has: no randomness is shared."""
        for chunk in chunks:
            streams = (chunk.numbers >> NUMBER_BITS) * len(self.parents) + which
            numbers = chunk.numbers & (1 << NUMBER_BITS) - 1
            yield replace(chunk, numbers=streams << NUMBER_BITS | numbers)


@dataclass(frozen=True, slots=True)
class Concat(Several):
    """One after the other."""

    parents: tuple[Stage, ...]

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        first = state["which"] if state else 0
        for which in range(first, len(self.parents)):
            inner = state["parent"] if state and which == first else None
            for chunk in self._told_apart(which, self.parents[which].open(run, inner)):
                yield chunk.stamped(wrapping("which", which))

    def described(self) -> str:
        return f"concat({len(self.parents)} streams)"


@dataclass(frozen=True, slots=True)
class Mix(Several):
    """Drawn by chance, by weight; one that has ended leaves its share to the others."""

    parents: tuple[Stage, ...]
    weights: tuple[float, ...]
    seed: int

    def length(self) -> int:
        # one without weight is never read
        drawn_from = zip(self.parents, self.weights, strict=True)
        return sum(parent.length() for parent, weight in drawn_from if weight > 0)

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        states = state["parents"] if state else [None] * len(self.parents)
        share, below = run.share(HOLDING_WEIGHT, self.weight - HOLDING_WEIGHT, chunks=2)
        run.meters.meter(self.described(), share)
        whole = self.weight - HOLDING_WEIGHT
        runs = [below.limited(below.limit_bytes * parent.weight // whole) for parent in self.parents]
        supplies = [
            _Supply(self._told_apart(which, () if at == "ended" else parent.open(runs[which], at)), at)
            for which, (parent, at) in enumerate(zip(self.parents, states, strict=True))
        ]
        drawn = state["drawn"] if state else 0
        rows = 1 if self.batched else run.rows
        try:
            while picks := self._draw(run, supplies, drawn, rows):
                yield _dealt(picks, drawn)
                drawn += len(picks)
        finally:
            for supply in supplies:
                supply.close()

    def _draw(self, run: Run, supplies: list["_Supply"], drawn: int, rows: int) -> list["_Pick"]:
        seeds = seeds_of(self.seed, run.epoch, np.arange(drawn, drawn + rows))
        chances = (seeds >> np.uint64(11)).astype(np.float64) / 2.0**53
        picks: list[_Pick] = []
        for chance in chances.tolist():
            give_way()
            supply = _chosen(supplies, self.weights, chance)
            if supply is None:
                break
            chunk, row = supply.take()
            picks.append(_Pick(chunk, row, [one.state for one in supplies]))
        return picks

    def described(self) -> str:
        return f"mix({len(self.parents)} streams, {list(self.weights)}, seed={self.seed})"


@dataclass(slots=True)
class _Pick:
    chunk: Chunk
    row: int
    states: list[State]


class _Supply:
    """One of the streams that are drawn from, a row at a time."""

    def __init__(self, chunks: Iterator[Chunk], state: State) -> None:
        self.state = state
        self._chunks = chunks
        self._chunk: Chunk | None = None
        self._row = 0

    def has_more(self) -> bool:
        while self._chunk is None or self._row >= self._chunk.rows:
            self._chunk, self._row = next(self._chunks, None), 0
            if self._chunk is None:
                self.state = "ended"
                return False
        return True

    def take(self) -> tuple[Chunk, int]:
        chunk, row = self._chunk, self._row
        if chunk is None:
            raise AssertionError("take comes behind has_more")
        self._row += 1
        self.state = chunk.stamp(row)
        return chunk, row

    def close(self) -> None:
        close(self._chunks)


def _chosen(supplies: list[_Supply], weights: Sequence[float], chance: float) -> _Supply | None:
    """Return whom a chance from 0 to 1 falls on, among those that have not ended."""
    left = [(supply, weight) for supply, weight in zip(supplies, weights, strict=True) if weight > 0]
    while left:
        total, reached = sum(weight for _, weight in left), 0.0
        for supply, weight in left:
            reached += weight / total
            if chance < reached or supply is left[-1][0]:
                if supply.has_more():
                    return supply
                left = [one for one in left if one[0] is not supply]
                break
    return None


def _dealt(picks: list[_Pick], drawn: int) -> Chunk:
    """Return the picked rows as one chunk, in the order they were drawn."""
    states = [pick.states for pick in picks]

    def stamp(row: int) -> State:
        return {"drawn": drawn + row + 1, "parents": states[row]}

    if picks[0].chunk.whole:
        return replace(picks[0].chunk, stamp=stamp)
    groups = _by_chunk(picks)
    order = np.argsort(np.concatenate([drawn_at for _, _, drawn_at in groups]))
    epochs = epochs_of([(epochs_at(chunk.epoch, rows), len(rows)) for chunk, rows, _ in groups])
    return Chunk(
        value=rows_at(joined([rows_at(chunk.value, rows) for chunk, rows, _ in groups]), order),
        rows=len(picks),
        numbers=np.concatenate([chunk.numbers[rows] for chunk, rows, _ in groups])[order],
        epoch=epochs_at(epochs, order),
        stamp=stamp,
    )


def _by_chunk(picks: list[_Pick]) -> list[tuple[Chunk, NDArray[np.int64], NDArray[np.int64]]]:
    """Return every chunk that was drawn from, which of its rows, and when they were drawn."""
    drawn: dict[int, list[int]] = {}
    for at, pick in enumerate(picks):
        drawn.setdefault(id(pick.chunk), []).append(at)
    return [
        (picks[ats[0]].chunk, np.array([picks[at].row for at in ats]), np.array(ats))
        for ats in drawn.values()
    ]
