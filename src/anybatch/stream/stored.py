"""The source that a cache is: full, being filled by whoever reads it, or filled before it can be read."""

import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from anybatch.records import load_index
from anybatch.stream.cache_folder import Generation, default_root, load
from anybatch.stream.chunk import Chunk
from anybatch.stream.filling import About, Filling
from anybatch.stream.hashes import Unstable
from anybatch.stream.identity import fingerprint_of, name_of
from anybatch.stream.lifted import SHUFFLES, every_stage
from anybatch.stream.order import Addressed, CannotMerge, Step, addressed, length_of
from anybatch.stream.run import Run
from anybatch.stream.slices import Shard
from anybatch.stream.stage import SOURCE_WEIGHT, Stage
from anybatch.stream.table import Numbers, Table

CACHE_WEIGHT = SOURCE_WEIGHT

_log = logging.getLogger("anybatch")


class Held:
    """What a cache holds in this process, once it is full. A copy in another process starts empty."""

    def __init__(self) -> None:
        self.table: Table | None = None
        self.lock = threading.Lock()
        # the process in which somebody fills it by reading it
        self.filled_by = 0

    def __reduce__(self) -> Any:
        return Held, ()


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """The elements that a cache keeps. Their content is that of epoch 0; their order is anybody's."""

    content: Stage
    path: Path | None
    held: Held

    @property
    def numbered(self) -> bool:
        return True

    def records(self) -> int:
        table, numbered = self.held.table, self._numbered
        if table is not None:
            return table.positions
        return self.content.length() if numbered is None else numbered.length()

    def left_out(self) -> Numbers:
        table, numbered = self.held.table, self._numbered
        if table is not None and table.slots is not None:
            return np.flatnonzero(table.slots == 0)
        return np.empty(0, np.int64) if table is not None or numbered is None else numbered.left_out()

    def mean_bytes(self) -> int:
        table, numbered = self.held.table, self._numbered
        if table is not None:
            return table.mean_bytes
        return 0 if numbered is None else int(numbered.source.mean_bytes())

    def open_in(self, run: Run, steps: tuple[Step, ...], start: int) -> Iterator[Chunk]:
        self._refuse_parts_of_others(steps)
        table = self._present(run)
        if table is None and self._has_to_be_full(steps, start):
            table = self._filled(run)
        if table is not None:
            yield from _given_out(table, run, steps, start)
        elif _everything(steps, start) and self._is_mine_to_fill():
            yield from self._filling(run, steps)
        else:
            yield from self._straight(run, steps, start)

    def _present(self, run: Run) -> Table | None:
        with self.held.lock:
            if self.held.table is None and self.held.filled_by != os.getpid():
                self.held.table = _Place(self.content, self.path).load()
            table = self.held.table
        share, _ = self._shared(run)
        # under a lower limit than before, what is in memory is too much
        return None if table is None or table.memory_bytes > share else table

    def _shared(self, run: Run) -> tuple[int, Run]:
        # on disk it needs no more than what is on its way there
        weight = self.content.weight if self.path is None else 7 * CACHE_WEIGHT
        share, below = run.share(CACHE_WEIGHT, weight, chunks=1, reserved=self.content.reserved_bytes)
        return run.cached_bytes(share), below

    def _has_to_be_full(self, steps: tuple[Step, ...], start: int) -> bool:
        """Return whether these elements can, or should, be had only when all of them are kept."""
        resumed = start > 0 or any(name == "remaining" for name, _ in steps)
        takes = any(name == "take" for name, _ in steps)
        if self._numbered is None:
            full = resumed or any(name != "take" for name, _ in steps)
        elif resumed or _everything(steps, start):
            full = False
        else:
            full = not takes or 2 * length_of(self.records(), steps) >= self.records()
        if takes and not full:
            _log.info("cache: not filled for what `take` takes of it; take before cache keeps just that")
        return full

    def _is_mine_to_fill(self) -> bool:
        with self.held.lock:
            mine = self.held.filled_by != os.getpid()
            self.held.filled_by = os.getpid()
        return mine

    def _filled(self, run: Run) -> Table:
        _log.info("cache: filled before it is read, because not all of it is asked for, or not in order")
        for _ in self._filling(run, ()):
            pass
        if self.held.table is None:
            raise AssertionError("a cache that was filled is full")
        return self.held.table

    def _filling(self, run: Run, steps: tuple[Step, ...]) -> Iterator[Chunk]:
        """Yield all elements in some order, and keep them on the way."""
        share, below = self._shared(run)
        place, expected = _Place(self.content, self.path), self._expected(steps)
        filling = Filling(run.meters.meter("cache()", share), place.begin, expected, self.records)
        try:
            if self.path is not None:
                filling.go_to_disk()
            for chunk in self._straight(below, steps, 0):
                filling.add(chunk, self._positions_of(chunk, filling.elements))
                if filling.elements == expected:
                    # now: whoever knows how many there are does not ask for one more
                    self._keep(filling, place, expected)
                yield chunk
            if not filling.finished:
                self._keep(filling, place, filling.elements if self._numbered is None else self.records())
        finally:
            filling.close()
            self.held.filled_by = 0

    def _keep(self, filling: Filling, place: "_Place", positions: int) -> None:
        about = About(positions, self.mean_bytes(), self.content.damages())
        self.held.table = filling.finish(about, place.still_the_same())

    def _straight(self, run: Run, steps: tuple[Step, ...], start: int) -> Iterator[Chunk]:
        """Yield elements from where they come from."""
        numbered = self._numbered
        if numbered is None:
            chunks = _first_of(self.content.open(run.at_epoch(0), None), steps)
            chunks = _numbered(chunks) if self.content.batched else _in_batches(chunks, run.rows)
        elif not steps and not start:
            # not by number: then nobody has to count them first
            chunks = self.content.open(run.at_epoch(0), None)
        else:
            first = replace(numbered, source=_FirstEpoch(numbered.source), steps=(*numbered.steps, *steps))
            chunks = first.open(run, {"position": start})
        return (replace(chunk, epoch=run.epoch) for chunk in chunks)

    def _expected(self, steps: tuple[Step, ...]) -> int | None:
        """Return how many elements will come, where that is known without reading."""
        if self._numbered is None:
            return None
        shards = getattr(getattr(self._numbered.source, "record_set", None), "shards", ())
        return self.records() if steps or all(load_index(shard) is not None for shard in shards) else None

    def _positions_of(self, chunk: Chunk, before: int) -> Numbers:
        if self._numbered is None:
            return np.arange(before, before + chunk.rows)
        return _within(chunk.numbers, self._numbered.steps)

    @property
    def _numbered(self) -> Addressed | None:
        """The content as source, order and maps, where its numbers are those of the source."""
        found = addressed(self.content)
        return None if found is None or isinstance(found.source, Stored) else found

    def _refuse_parts_of_others(self, steps: tuple[Step, ...]) -> None:
        shards = [stage for stage in every_stage(self.content) if isinstance(stage, Shard)]
        if any(name == "remaining" for name, _ in steps) and any(shard.count > 1 for shard in shards):
            raise CannotMerge(
                "the number of workers cannot change where each keeps its own shard; put shard behind cache"
            )


@dataclass(frozen=True, slots=True)
class _FirstEpoch:
    """A source whose records claim to be of epoch 0, for whatever is random about them."""

    source: Any

    def open_in(self, run: Run, steps: tuple[Step, ...], start: int) -> Iterator[Chunk]:
        return (replace(chunk, epoch=0) for chunk in self.source.open_in(run, steps, start))


class _Place:
    """Where the columns of some content lie on disk, and what makes them its columns."""

    def __init__(self, content: Stage, path: Path | None) -> None:
        self._content = content
        self._folder = (default_root() if path is None else path) / name_of(content)
        self._fingerprint: str | None = None

    def load(self) -> Table | None:
        if not self._folder.exists():
            return None
        fingerprint = self._now()
        return None if fingerprint is None else load(self._folder, fingerprint)

    def begin(self) -> Generation:
        self._fingerprint = self._now()
        return Generation(self._folder)

    def still_the_same(self) -> str | None:
        """Return what the columns were made from; None if that has changed meanwhile or cannot be told."""
        return self._fingerprint if self._fingerprint and self._fingerprint == self._now() else None

    def _now(self) -> str | None:
        try:
            return fingerprint_of(self._content)
        except Unstable as unstable:
            _log.warning(
                "cache: later runs fill it anew, because nobody can tell whether %s changes", unstable
            )
            return None


def _given_out(table: Table, run: Run, steps: tuple[Step, ...], start: int) -> Iterator[Chunk]:
    meter = run.meters.meter("cache()", run.limit_bytes)
    meter.hold(table.memory_bytes)
    room = max(1, run.limit_bytes - table.memory_bytes)
    yield from table.chunks(replace(run, chunk_bytes=min(run.chunk_bytes, room)), steps, start, meter)


def _everything(steps: tuple[Step, ...], start: int) -> bool:
    return start == 0 and all(name in SHUFFLES for name, _ in steps)


def _within(numbers: Numbers, steps: tuple[Step, ...]) -> Numbers:
    """Return at which positions the records with some numbers come, after steps that keep their order."""
    for name, values in steps:
        if name == "skip":
            numbers = numbers - values[0]
        elif name == "shard":
            numbers = (numbers - values[1]) // values[0]
    return numbers


def _first_of(chunks: Iterator[Chunk], steps: tuple[Step, ...]) -> Iterator[Chunk]:
    """Yield no more elements than the steps, which only take, leave."""
    left = min((counts[0] for _, counts in steps), default=None)
    for chunk in chunks:
        if left is None:
            yield chunk
            continue
        if not left:
            return
        part = chunk.cut(0, left)
        left -= part.rows
        yield part


def _in_batches(chunks: Iterator[Chunk], size: int) -> Iterator[Chunk]:
    """Yield the same rows so that chunks end where batches of so many rows do, with positions for states."""
    passed, waiting = 0, None
    for chunk in chunks:
        start = 0
        while start < chunk.rows:
            part = chunk.cut(start, start + size - passed % size)
            start += part.rows
            if waiting is not None:
                yield waiting
            waiting = _at_position(part, passed, ends_batch=(passed + part.rows) % size == 0)
            passed += part.rows
    if waiting is not None:
        yield replace(waiting, ends_batch=True)


def _numbered(batches: Iterator[Chunk]) -> Iterator[Chunk]:
    """Yield batches with the states that they have once they are stored: which one comes next."""
    for number, batch in enumerate(batches, 1):
        yield replace(batch, stamp=lambda _row, number=number: {"position": number})  # type: ignore[misc]


def _at_position(part: Chunk, first: int, *, ends_batch: bool) -> Chunk:
    return replace(
        part,
        asked=part.rows,
        ends_batch=ends_batch,
        stamp=lambda row: {"position": first + row + 1},
    )
