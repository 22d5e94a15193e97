"""Every record exactly once, in an order that depends on the seed and the epoch alone."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np

from anybatch._native import Order
from anybatch.records import int64s
from anybatch.stream.chunk import Chunk, State, epochs_at, epochs_of
from anybatch.stream.order import Addressed, Reordered, Step, addressed
from anybatch.stream.run import Run
from anybatch.stream.seeds import seeds_of
from anybatch.stream.stage import HOLDING_WEIGHT, Operation
from anybatch.stream.structure import as_columns, joined, rows_at


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
        return f"shuffle(seed={self.seed}{window}{_once(self.anew)})"


@dataclass(frozen=True, slots=True)
class WindowShuffle(Operation):
    """Records shuffled as far as a window reaches, where they can be had in order only."""

    seed: int
    window_bytes: int
    anew: bool = True

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        share, below = run.share(2 * HOLDING_WEIGHT, self.parent.weight, chunks=4)
        meter = run.meters.meter(self.described(), share)
        # the window, and for a moment its rows in their new order
        most_bytes = min(self.window_bytes, share // 2)
        place = _Place(**state) if state else _Place(0, None, 0)
        for window in _windows(self.parent.open(below, place.parent), most_bytes):
            meter.peak_bytes = max(meter.peak_bytes, 2 * window.nbytes)
            behind = _Place(place.window + 1, window.stamp(window.rows - 1), 0)
            rest = self._shuffled(window, place.window).cut(place.emitted, window.rows)
            # all that is kept of it while its rows are given out, and nothing while the next one is made
            del window
            yield from _stamped(rest, place, behind, run.most_rows)
            del rest
            place = behind

    @property
    def weight(self) -> int:
        return self.parent.weight + 2 * HOLDING_WEIGHT

    def described(self) -> str:
        return f"shuffle(seed={self.seed}, window={self.window_bytes}{_once(self.anew)})"

    def _shuffled(self, window: Chunk, number: int) -> Chunk:
        epoch = int(np.max(window.epoch)) if self.anew else 0
        own_seed = int(seeds_of(self.seed, number, np.zeros(1, np.int64))[0])
        rows = int64s(Order(window.rows, [("shuffle", [own_seed, epoch])]).records(0, window.rows))
        return replace(
            window,
            value=rows_at(window.value, rows),
            numbers=window.numbers[rows],
            epoch=epochs_at(window.epoch, rows),
        )


def _once(anew: bool) -> str:
    return "" if anew else ", reshuffle_each_iteration=False"


def _windows(chunks: Iterator[Chunk], most_bytes: int) -> Iterator[Chunk]:
    held: list[Chunk] = []
    n_bytes = 0
    for chunk in chunks:
        held.append(chunk)
        n_bytes += chunk.nbytes
        del chunk
        if n_bytes >= most_bytes:
            yield _together(held)
            n_bytes = 0
    if held:
        yield _together(held)


def _together(chunks: list[Chunk]) -> Chunk:
    """Return all rows as one chunk, and let go of the others."""
    behind = chunks[-1].stamp(chunks[-1].rows - 1)
    rows = sum(chunk.rows for chunk in chunks)
    window = Chunk(
        value=joined([as_columns(chunk.value) for chunk in chunks]),
        rows=rows,
        numbers=np.concatenate([chunk.numbers for chunk in chunks]),
        epoch=epochs_of([(chunk.epoch, chunk.rows) for chunk in chunks]),
        stamp=lambda row: behind if row == rows - 1 else None,
    )
    chunks.clear()
    return window


@dataclass(frozen=True, slots=True)
class _Place:
    """A window by its number and by where the parent was before it, and how many of its rows are behind."""

    window: int
    parent: State
    emitted: int


def _stamped(rest: Chunk, place: _Place, behind: _Place, rows: int) -> Iterator[Chunk]:
    """Yield what is left of a window, `rows` at a time; the state of its last row lies behind it."""

    def state(row: int) -> State:
        last = row == rest.rows - 1
        return asdict(behind if last else replace(place, emitted=place.emitted + row + 1))

    whole = replace(rest, stamp=state)
    for first in range(0, rest.rows, rows):
        yield whole.cut(first, first + rows)
