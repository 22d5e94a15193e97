"""A shuffle as far as a window reaches, where records can be had in order only."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anybatch._native import Order
from anybatch.errors import WindowDoesNotFit
from anybatch.records import int64s
from anybatch.stream.chunk import Chunk, Epochs, State, close, epochs_at, epochs_of
from anybatch.stream.meters import Meter
from anybatch.stream.pieces import Pieces, Rows
from anybatch.stream.row_sizes import Sizes, row_sizes
from anybatch.stream.run import Run
from anybatch.stream.seeds import seeds_of
from anybatch.stream.shuffle import once
from anybatch.stream.stage import HOLDING_WEIGHT, Operation

_PIECES = 16
"""A window lies in about so many pieces: rows are taken faster from few of them than from many chunks."""
_LEAST_REST = 8
"""So small a part of a window has to be left for everything else, or work ahead would stand still."""


@dataclass(frozen=True, slots=True)
class WindowShuffle(Operation):
    """Records shuffled among those that lie in one window.

    Which those are depends on the records' own sizes alone: neither on the chunks that they come in nor on
    how much memory there is, so that the order is the same wherever it is made.
    """

    seed: int
    window_bytes: int
    anew: bool = True

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        rest = run.limit_bytes - self.reserved_bytes
        if rest < self.window_bytes // _LEAST_REST:
            raise WindowDoesNotFit(self.described(), 2 * self.reserved_bytes, run.limit_bytes)
        share, below = run.limited(run.limit_bytes - self.window_bytes).share(
            2 * HOLDING_WEIGHT, self.parent.weight, chunks=4, reserved=self.parent.reserved_bytes
        )
        meter = run.meters.meter(self.described(), self.window_bytes + share)
        # what is given out is there twice while it is put in order
        most_bytes = min(run.chunk_bytes, share // 4)
        place = _Place(**state) if state else _Place(0, None, 0)
        chunks = self.parent.open(below, place.parent)
        for window in _windows(chunks, self.window_bytes, min(self.window_bytes // _PIECES, share // 4)):
            _account(window, meter)
            behind = _Place(place.window + 1, window.behind, 0)
            order = self._order(window, place.window)
            for start, stop in _cuts(window.sizes[order], place.given, run.most_rows, most_bytes):
                yield window.chunk(order[start:stop], place, behind, start)
            place = behind
            # nothing is kept of it while the next one is made
            del window
        close(chunks)

    @property
    def weight(self) -> int:
        return self.parent.weight + 2 * HOLDING_WEIGHT

    @property
    def reserved_bytes(self) -> int:
        return self.window_bytes + self.parent.reserved_bytes

    def described(self) -> str:
        return f"shuffle(seed={self.seed}, window={self.window_bytes}{once(self.anew)})"

    def _order(self, window: "_Window", number: int) -> NDArray[np.int64]:
        epoch = int(np.max(window.epoch)) if self.anew else 0
        own_seed = int(seeds_of(self.seed, number, np.zeros(1, np.int64))[0])
        rows = len(window.sizes)
        return int64s(Order(rows, [("shuffle", [own_seed, epoch])]).records(0, rows))


@dataclass(frozen=True, slots=True)
class _Place:
    """A window by its number and by where the parent was before it, and how many of its rows are behind."""

    window: int
    parent: State
    given: int


@dataclass(frozen=True, slots=True)
class _Window:
    """The rows of one window as they came, and where the parent is behind them."""

    rows: Rows
    sizes: Sizes
    numbers: NDArray[np.int64]
    epoch: Epochs
    behind: State

    def chunk(self, rows: NDArray[np.int64], place: _Place, behind: _Place, given: int) -> Chunk:
        """Return some rows; the state of the last row of all lies behind the window."""
        count = len(self.sizes)

        def state(row: int) -> State:
            passed = given + row + 1
            return asdict(behind if passed == count else replace(place, given=passed))

        return Chunk(
            value=self.rows.at(rows),
            rows=len(rows),
            numbers=self.numbers[rows],
            epoch=epochs_at(self.epoch, rows),
            stamp=state,
        )


class _Filling:
    """A window that has room for more rows, or is empty."""

    def __init__(self, piece_bytes: int) -> None:
        self.n_bytes = 0
        self._pieces = Pieces(piece_bytes)
        self._sizes: list[Sizes] = []
        self._numbers: list[NDArray[np.int64]] = []
        self._epochs: list[tuple[Epochs, int]] = []
        self._behind: State = None

    def add(self, chunk: Chunk, sizes: Sizes) -> None:
        self._pieces.add(chunk.value, chunk.rows)
        self._sizes.append(sizes)
        self._numbers.append(chunk.numbers)
        self._epochs.append((chunk.epoch, chunk.rows))
        self._behind = chunk.stamp(chunk.rows - 1)
        self.n_bytes += int(sizes.sum())

    def closed(self) -> _Window:
        return _Window(
            self._pieces.closed(),
            np.concatenate(self._sizes),
            np.concatenate(self._numbers),
            epochs_of(self._epochs),
            self._behind,
        )


def _windows(chunks: Iterator[Chunk], most_bytes: int, piece_bytes: int) -> Iterator[_Window]:
    """Yield as many rows at a time as fit into so many bytes; one that is larger than that alone."""
    filling = _Filling(piece_bytes)
    for chunk in chunks:
        sizes, start = row_sizes(chunk.value), 0
        while start < chunk.rows:
            room = most_bytes - filling.n_bytes
            fitting = int(np.searchsorted(np.cumsum(sizes[start:]), room, side="right"))
            if not fitting and filling.n_bytes:
                full, filling = filling, _Filling(piece_bytes)
                yield full.closed()
                del full
                continue
            stop = start + max(1, fitting)
            filling.add(chunk.cut(start, stop), sizes[start:stop])
            start = stop
    if filling.n_bytes:
        yield filling.closed()


def _cuts(sizes: Sizes, start: int, most_rows: int, most_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield from where to where rows are given out together, from the row `start` on."""
    ends = np.cumsum(sizes)
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        fitting = int(np.searchsorted(ends, before + most_bytes, side="right")) - start
        stop = start + min(most_rows, max(1, fitting))
        yield start, min(stop, len(sizes))
        start = stop


def _account(window: _Window, meter: Meter) -> None:
    n_bytes = int(window.sizes.sum())
    if n_bytes > meter.bound_bytes:
        raise WindowDoesNotFit(meter.stage, n_bytes, meter.bound_bytes)
    meter.peak_bytes = max(meter.peak_bytes, n_bytes)
