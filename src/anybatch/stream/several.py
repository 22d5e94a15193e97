"""Several streams as one."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anybatch.errors import Damage, DoesNotFit
from anybatch.records import give_way
from anybatch.stream.chunk import NUMBER_BITS, Chunk, State, close, epochs_at, epochs_of, wrapping
from anybatch.stream.meters import Meter
from anybatch.stream.row_sizes import Sizes, row_sizes
from anybatch.stream.run import Run
from anybatch.stream.seeds import seeds_of
from anybatch.stream.stage import HOLDING_WEIGHT, Stage
from anybatch.stream.structure import Loose, Structure, as_columns, by_name, bytes_of, dealt, joined, rows_at

Rows: TypeAlias = NDArray[np.int64]


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
        return sum(parent.weight for parent in self.parents)

    @property
    def reserved_bytes(self) -> int:
        return sum(parent.reserved_bytes for parent in self.parents)

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
        meter, most_bytes, runs = self._shared(run)
        states = state["parents"] if state else [None] * len(self.parents)
        supplies = [
            _Supply(self._opened(which, runs[which], at), at, meter, len(self.parents))
            for which, at in enumerate(states)
        ]
        drawn = state["drawn"] if state else 0
        try:
            while picks := self._draw(run, supplies, drawn, most_bytes):
                dealt, count = [_dealt(picks, drawn, meter)], len(picks)
                # neither what was drawn nor what is used up is held while others work
                picks.clear()
                for supply in supplies:
                    supply.end_round()
                yield dealt.pop()
                drawn += count
        finally:
            for supply in supplies:
                supply.close()

    @property
    def weight(self) -> int:
        return sum(parent.weight for parent in self.parents) + 2 * HOLDING_WEIGHT

    def _opened(self, which: int, run: Run, at: State) -> Iterator[Chunk]:
        return self._told_apart(which, () if at == "ended" else self.parents[which].open(run, at))

    def _shared(self, run: Run) -> tuple[Meter, int, list[Run]]:
        """Return the account, how many bytes may be drawn at a time, and the runs of the streams."""
        weight, reserved = sum(parent.weight for parent in self.parents), self.reserved_bytes
        # a chunk of each stream is held, and may be as large as all that the stream itself may hold
        share, below = run.share(
            self.weight - weight // 2, weight // 2, chunks=len(self.parents) + 2, reserved=reserved
        )
        rest = max(0, below.limit_bytes - reserved)
        runs = [
            below.limited(parent.reserved_bytes + rest * parent.weight // weight) for parent in self.parents
        ]
        # the rows that were drawn are there twice while they are put in order
        most_bytes = min(run.chunk_bytes, (share - rest) // 2)
        return run.meters.meter(self.described(), share), most_bytes, runs

    def _draw(self, run: Run, supplies: list["_Supply"], drawn: int, most_bytes: int) -> list["_Pick"]:
        """Return what is drawn next, from one chunk of each stream: some rows as far as there are any."""
        rows = 1 if self.batched else run.most_rows
        seeds = seeds_of(self.seed, run.epoch, np.arange(drawn, drawn + rows))
        chances = (seeds >> np.uint64(11)).astype(np.float64) / 2.0**53
        picks: list[_Pick] = []
        n_bytes = 0
        for chance in chances.tolist():
            give_way()
            supply = _chosen(supplies, self.weights, chance)
            if supply is None or supply.is_used_up:
                break
            n_bytes += supply.next_bytes
            if picks and n_bytes > most_bytes:
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
    """One of the streams that are drawn from, a row at a time; of each only one chunk is there in a round."""

    def __init__(self, chunks: Iterator[Chunk], state: State, meter: Meter, streams: int) -> None:
        self.state = state
        self._streams = streams
        self._chunks = chunks
        self._meter = meter
        self._chunk: Chunk | None = None
        self._sizes: Sizes | None = None
        self._row = 0

    @property
    def is_used_up(self) -> bool:
        """Whether all rows of a chunk were drawn in this round: what comes next is known in the next one."""
        return self._chunk is not None and self._row >= self._chunk.rows

    @property
    def next_bytes(self) -> int:
        """How large the next row is; a whole batch is handed on as it is."""
        return 0 if self._sizes is None else int(self._sizes[self._row])

    def may_have_more(self) -> bool:
        """Return False if the stream has ended."""
        while self._chunk is None:
            chunk = next(self._chunks, None)
            if chunk is None:
                self.state = "ended"
                return False
            if chunk.rows:
                self._begin(chunk)
        return True

    def end_round(self) -> None:
        """Let go of what is used up."""
        if self._chunk is not None and self.is_used_up:
            self._meter.hold(-self._chunk.nbytes)
            self._chunk, self._sizes = None, None

    def _begin(self, chunk: Chunk) -> None:
        # one of each stream, and what is drawn from them
        _hold(self._meter, chunk.nbytes, (self._streams + 2) * chunk.nbytes)
        self._chunk, self._row = chunk, 0
        self._sizes = None if chunk.whole else row_sizes(chunk.value)

    def take(self) -> tuple[Chunk, int]:
        chunk, row = self._chunk, self._row
        if chunk is None:
            raise AssertionError("take comes behind may_have_more")
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
                if supply.may_have_more():
                    return supply
                left = [one for one in left if one[0] is not supply]
                break
    return None


def _hold(meter: Meter, n_bytes: int, expected: int = 0) -> None:
    """Note so many bytes more; an error if that is too much, with what is `expected` to do."""
    meter.hold(n_bytes)
    if meter.held_bytes > meter.bound_bytes:
        raise DoesNotFit(meter.stage, max(expected, meter.held_bytes), meter.bound_bytes)


def _dealt(picks: list[_Pick], drawn: int, meter: Meter) -> Chunk:
    """Return the picked rows as one chunk, in the order they were drawn."""
    states = [pick.states for pick in picks]

    def stamp(row: int) -> State:
        return {"drawn": drawn + row + 1, "parents": states[row]}

    if picks[0].chunk.whole:
        return replace(picks[0].chunk, stamp=stamp)
    chunks, rows, places = _by_chunk(picks)
    value = _dealt_value([chunk.value for chunk in chunks], rows, places)
    # for a moment the rows of one chunk are there twice
    n_bytes = 2 * bytes_of(value)
    others = len(picks[0].states) * max(chunk.nbytes for chunk in chunks)
    _hold(meter, n_bytes, n_bytes + others)
    meter.hold(-n_bytes)
    order = np.argsort(np.concatenate(places))
    epochs = epochs_of(
        [(epochs_at(chunk.epoch, at), len(at)) for chunk, at in zip(chunks, rows, strict=True)]
    )
    return Chunk(
        value=value,
        rows=len(picks),
        numbers=np.concatenate([chunk.numbers[at] for chunk, at in zip(chunks, rows, strict=True)])[order],
        epoch=epochs_at(epochs, order),
        stamp=stamp,
    )


def _dealt_value(values: list[Structure], rows: list[Rows], places: list[Rows]) -> Structure:
    if all(isinstance(value, Loose) for value in values):
        together = joined([rows_at(value, at) for value, at in zip(values, rows, strict=True)])
        return rows_at(together, np.argsort(np.concatenate(places)))
    return by_name(
        lambda columns, name: dealt(columns, rows, places, name), [as_columns(one) for one in values]
    )


def _by_chunk(picks: list[_Pick]) -> tuple[list[Chunk], list[Rows], list[Rows]]:
    """Return every chunk that was drawn from, which of its rows, and when they were drawn."""
    drawn: dict[int, list[int]] = {}
    for at, pick in enumerate(picks):
        drawn.setdefault(id(pick.chunk), []).append(at)
    chunks = [picks[ats[0]].chunk for ats in drawn.values()]
    rows = [np.array([picks[at].row for at in ats]) for ats in drawn.values()]
    return chunks, rows, [np.array(ats) for ats in drawn.values()]
