"""What an update really needs: a few of them made on the user's own model, and everything put back."""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from anybatch.handover import Heartbeat, Occupied, Pulse, alone_in, place
from anybatch.memory import give_back_freed, held
from anybatch.train.checkpoint_arrays import StoredArrays, pieces_of
from anybatch.train.checkpoint_model import Snapshot, restore_model
from anybatch.train.checkpoint_random import random_state, restore_random
from anybatch.train.inputs import Batches, Part, Source
from anybatch.train.memories import Memory
from anybatch.train.plan_memory import cache_folder
from anybatch.train.refusals import UpdateCutShort
from anybatch.train.session import Session
from anybatch.train.transaction import PartSize

_SMALL_COPY = 16
_BEFORE, _ABANDONED_SECONDS = "before-", 60
UPDATES = 2
"""Slots and workspaces appear late: the second update needs more than the first."""
MOST_UPDATES, ENOUGH_SECONDS = 6, 0.5
"""More while they take no time: which operation runs first differs, and with it the peak."""
TIMED = 2
"""The first one behind those of another size finds less of what it needs at hand."""
SEVERAL = 2
"""Parts of a probe in several parts: the second one finds the sums of the first."""
_PIECES = 8
"""A batch comes in even parts, and none of those has more than half of its rows and fewer than all: so many
rows are put together out of eighths."""


class RanOut(Exception):
    """An update of that size did not fit."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a few updates took."""

    rise_bytes: int
    """How far memory rose, all that is kept of earlier ones included."""
    left_bytes: int = 0
    """How far it stayed risen."""
    used_bytes: int = 0
    """What their tensors took at once, where an allocator of the host says so."""
    seconds: float = 0.0
    """What the quickest of them took."""

    @property
    def of_tensors_bytes(self) -> int:
        """What tensors took of an allocator that keeps, and of the C library, to which it went back."""
        return self.used_bytes + self.given_back_bytes

    @property
    def given_back_bytes(self) -> int:
        """What the C library took, and the next one will find."""
        return max(0, self.rise_bytes - self.left_bytes)


class Prober:
    """Makes updates of any size and measures how far memory rises above where it was before the first.

    Inside its `with` block a supervisor is told which size is tried: if this process is killed for it, the
    next one tries less.
    """

    def __init__(self, model: Any, source: Source, memory: Memory) -> None:
        self._source = source
        self._memory = memory
        self._session = Session(model, None, source)
        self._session.tells = False
        self._heart = Heartbeat.of_this_process()
        self._base_bytes = memory.held_bytes()
        self._pool = self._session.backend.host_pool()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._beat(rows=0)

    def warm_up(self) -> tuple[Taken, Taken]:
        """Trace all, and return what one sample takes, in one part and as one of several."""
        for several in (False, True):
            self.taken(1, several=several)
        return self.taken(1, several=False), self.taken(1, several=True)

    def taken(self, rows: int, *, several: bool) -> Taken:
        """Return what a few updates in parts of so many rows took; else raise `RanOut`."""
        return self._taken(rows, SEVERAL if several else 1)

    def taken_by_all(self, rows: int) -> Taken:
        """Return the same of updates of a whole batch, in as many parts as it has."""
        return self._taken(rows, self._parts_of_all(rows))

    def timed(self, rows: int) -> Taken:
        """Return the same where it is known that it fits: nothing is to be learnt but how long it takes."""
        return self._made(rows, self._parts_of_all(rows), least=TIMED, most=TIMED)

    def _parts_of_all(self, rows: int) -> int:
        return max(SEVERAL, -(-(self._source.batch_size or rows) // rows))

    def _taken(self, rows: int, parts: int) -> Taken:
        return self._made(rows, parts, least=UPDATES, most=MOST_UPDATES)

    def _made(self, rows: int, parts: int, *, least: int, most: int) -> Taken:
        give_back_freed()
        self._beat(rows)
        size = self._session.transaction.size = PartSize(rows)
        start, seconds = time.perf_counter(), float("inf")
        with self._memory.watch() as watch, self._watched_pool() as used:
            for done in range(most):
                if done >= least and time.perf_counter() - start > ENOUGH_SECONDS:
                    break
                try:
                    seconds = min(seconds, self._update(rows, parts))
                except UpdateCutShort:
                    # all of it will be put back
                    raise RanOut(rows) from None
        if size.events:
            raise RanOut(rows)
        give_back_freed()
        return Taken(self._above(watch.peak_bytes), self._above(self._memory.held_bytes()), used(), seconds)

    def _above(self, n_bytes: int) -> int:
        return max(0, n_bytes - self._base_bytes)

    @contextmanager
    def _watched_pool(self) -> Iterator[Callable[[], int]]:
        """Give what says, after the `with` block, how much tensors took in it."""
        backend = self._session.backend
        if self._pool is None:
            yield lambda: 0
            return
        before_bytes = backend.device_held_bytes(self._pool)
        with backend.device_watch(self._pool) as watch:
            yield lambda: max(0, watch.peak_bytes - before_bytes)

    def _beat(self, rows: int) -> None:
        if not self._heart.heard:
            return
        pulse = Pulse(
            batch_size=self._source.batch_size or 0,
            part=rows,
            held_bytes=held().counted_bytes,
            # a trial may take long without a sign of life
            training=False,
            planning=True,
        )
        self._heart.beat(pulse, now=True)

    def _update(self, rows: int, wanted: int) -> float:
        """Make one update, and return how long it took once its first part was there."""
        batches = self._source.open(0, self._asked(rows))
        expected = min(rows * wanted, self._source.batch_size or rows)
        try:
            parts = self._ready(batches, rows, wanted)
            begun = time.perf_counter()
            self._session.transaction.update(parts, expected)
            return time.perf_counter() - begun
        finally:
            close = getattr(batches, "close", None)
            if close is not None:
                close()

    def _asked(self, rows: int) -> int:
        """Return in what parts batches have to come so that some of them are that many rows."""
        whole = self._source.batch_size or rows
        return -(-whole // _PIECES) if rows < whole < 2 * rows else rows

    def _ready(self, batches: Batches, rows: int, wanted: int) -> Iterator[Part]:
        """Return the parts of a batch; the first one is made, as in training it would have been ahead."""
        for batch in batches:
            parts = self._some(batch, rows, wanted)
            # a batch of which every record is damaged has none
            if first := list(islice(parts, 1)):
                return chain(first, parts)
        return iter(())

    def _some(self, batch: Iterator[Part], rows: int, wanted: int) -> Iterator[Part]:
        """Yield so many parts, cut to so many rows where a batch comes whole; the last one is marked."""
        if self._asked(rows) < rows:
            batch = self._together(batch, rows)
        for number, (part, last) in enumerate(islice(batch, wanted), 1):
            yield self._cut(part, rows * wanted), last or number == wanted

    def _together(self, batch: Iterator[Part], rows: int) -> Iterator[Part]:
        """Yield so many rows of a batch as its only part."""
        backend, pieces, there = self._session.backend, list[Any](), 0
        for piece, _ in batch:
            pieces.append(piece)
            there += backend.row_count(piece)
            if there >= rows:
                break
        if pieces:
            yield backend.joined(pieces), True

    def _cut(self, columns: Any, rows: int) -> Any:
        backend = self._session.backend
        return columns if backend.row_count(columns) <= rows else backend.rows_between(columns, 0, rows)


@contextmanager
def undone(model: Any, *, free_bytes: int) -> Iterator[int]:
    """Keep everything that training moves, and put it back on leaving the `with` block.

    Gives the bytes of memory that takes: none where a copy would be a good part of what is free, because then
    it lies on the disk.
    """
    _remove_abandoned(cache_folder())
    with (
        TemporaryDirectory(prefix=_BEFORE, dir=cache_folder()) as folder,
        alone_in(Path(folder)),
    ):
        before, copy_bytes = _kept(Snapshot(model), Path(folder), free_bytes)
        chance = random_state()
        try:
            yield copy_bytes
        finally:
            restore_model(model, before)
            restore_random(chance)
            del before
            give_back_freed()


def _remove_abandoned(folder: Path) -> None:
    """Remove copies of processes that were killed before they could remove them: they are large."""
    for copy in folder.glob(f"{_BEFORE}*"):
        with suppress(OSError, Occupied), alone_in(copy):
            if time.time() - copy.stat().st_mtime > _ABANDONED_SECONDS:
                shutil.rmtree(copy)


def _kept(shared: Snapshot, folder: Path, free_bytes: int) -> tuple[Mapping[str, NDArray[Any]], int]:
    n_bytes = sum(shared[name].nbytes for name in shared)
    if n_bytes * _SMALL_COPY <= free_bytes:
        return {name: np.array(shared[name]) for name in shared}, n_bytes
    place(folder / "arrays", pieces_of(shared), durable=False)
    return StoredArrays(folder / "arrays"), 0
