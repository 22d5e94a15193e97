"""Streams over record shards."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from anybatch._native import Batch
from anybatch.errors import Damage
from anybatch.memory import cacheable_bytes
from anybatch.records import (
    Bounds,
    Feature,
    Ledger,
    Paths,
    RecordSet,
    Shard,
    find_shards,
    infer_from,
    int64s,
    resolve,
    sizes_and_samples,
)
from anybatch.stream.chunk import Chunk, State
from anybatch.stream.contents import Contents
from anybatch.stream.filter import kept
from anybatch.stream.order import Addressed, Numbers, Step, native_steps
from anybatch.stream.run import Run
from anybatch.stream.stage import SOURCE_WEIGHT, Stage
from anybatch.stream.stream import Stream


def read(
    paths: Paths,
    features: Mapping[str, Any] | type[bytes] | None = None,
    *,
    on_corrupt: str = "raise",
    max_corrupt: float | None = None,
    compression: str | None = "auto",
) -> Stream:
    """Return a stream over TFRecord shards: a path, a glob or a list of them.

    `features` says what to decode; None infers it from a sample of every shard, `bytes` gives each
    record's bytes as they are. `on_corrupt="skip"` leaves out only what is damaged, and `max_corrupt`
    (a count, or a fraction below 1) turns too much of that into an error.

    >>> import tempfile
    >>> import anybatch as ab
    >>> folder = tempfile.TemporaryDirectory()
    >>> files = ab.write(f"{folder.name}/a.tfrecord", [{"x": [0.5, n], "label": n} for n in range(5)])
    >>> data = read(
    ...     f"{folder.name}/*.tfrecord", {"x": ab.Numbers("float32", (2,)), "label": ab.Numbers("int64")}
    ... )
    >>> [batch["label"].tolist() for batch in data.batch(3)]
    [[0, 1, 2], [3, 4]]
    >>> folder.cleanup()
    """
    if on_corrupt not in {"raise", "skip"}:
        raise ValueError(f'on_corrupt is {on_corrupt!r}; it can be "raise" or "skip"')
    if max_corrupt is not None and on_corrupt != "skip":
        raise ValueError('max_corrupt counts what is left out, so it needs on_corrupt="skip"')
    ledger = Ledger(max_corrupt)
    shards = find_shards(paths, compression)
    return Stream(Records(RecordSet(shards, _wanted(features, shards), on_corrupt, ledger)))


def _wanted(features: Any, shards: tuple[Shard, ...]) -> dict[str, Feature] | None:
    if features is bytes:
        return None
    return infer_from(shards) if features is None else resolve(features)


@dataclass(frozen=True, slots=True)
class Records(Stage):
    """The records of a set of shards, numbered shard after shard."""

    record_set: RecordSet

    @property
    def numbered(self) -> bool:
        return all(not shard.compression for shard in self.record_set.shards)

    def records(self) -> int:
        return sum(index.records for index in self.record_set.indexes())

    def left_out(self) -> Numbers:
        return self.record_set.left_out()

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        if state and self.numbered:
            return Addressed(self).open(run, state)
        start = state["position"] if state else 0
        batches = self.record_set.native_in_file_order(run.rows, self._bounds(run))
        chunks = self._chunks(batches, run)
        # a compressed stream has no place to take up again but its beginning
        return _from_position(chunks, start) if start else chunks

    def open_in(self, run: Run, steps: tuple[Step, ...], start: int) -> Iterator[Chunk]:
        order = native_steps(steps, run.epoch, self.mean_bytes)
        bounds = replace(self._bounds(run), cached_bytes=cacheable_bytes(), swept_bytes=run.swept_bytes)
        batches = self.record_set.native_ordered(run.rows, order, bounds, start=start)
        return self._chunks(batches, run)

    def mean_bytes(self) -> int:
        indexes = self.record_set.indexes()
        return sum(index.stream_bytes for index in indexes) // max(1, sum(index.records for index in indexes))

    def _bounds(self, run: Run) -> Bounds:
        row_bytes = self.record_set.row_bytes()
        most = min(run.most_rows, max(1, run.chunk_bytes // max(1, row_bytes)))
        meter = run.meters.meter(self.described(), run.limit_bytes)
        return Bounds(most, run.threads, run.most_ahead, run.limit_bytes, meter=meter)

    def _chunks(self, batches: Iterator[Batch], run: Run) -> Iterator[Chunk]:
        for batch in batches:
            if batch.rows or (run.in_parts and batch.ends_batch):
                yield self._chunk(batch, run.epoch)

    def _chunk(self, batch: Batch, epoch: int) -> Chunk:
        return Chunk(
            value=self.record_set.columns(batch),
            rows=batch.rows,
            numbers=int64s(batch.numbers),
            epoch=epoch,
            stamp=partial(_behind, batch.positions, batch.rows - 1, batch.end),
            asked=batch.asked,
            ends_batch=batch.ends_batch,
        )

    def length(self) -> int:
        return self.record_set.count()

    @property
    def batched(self) -> bool:
        return False

    @property
    def weight(self) -> int:
        return SOURCE_WEIGHT

    def damages(self) -> list[Damage]:
        return list(self.record_set.ledger)

    def contents(self) -> Contents:
        shards = self.record_set.shards
        n_bytes, digest = sizes_and_samples(shards)
        return Contents(f"{_several(len(shards), 'file')} of {n_bytes:,} bytes", digest)

    def described(self) -> str:
        shards, features = self.record_set.shards, self.record_set.features
        what = (
            "bytes" if features is None else ", ".join(f"{name}: {one!r}" for name, one in features.items())
        )
        return f"read {_several(len(shards), 'shard')} ({what})"


def _several(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _behind(positions: Any, last: int, end: int, row: int) -> State:
    # damaged records behind the last row are passed with it
    return {"position": end if row == last else int(int64s(positions)[row]) + 1}


def _from_position(chunks: Iterator[Chunk], start: int) -> Iterator[Chunk]:
    for chunk in chunks:
        behind = np.fromiter((chunk.stamp(row)["position"] > start for row in range(chunk.rows)), np.bool_)
        if behind.any() or (not chunk.rows and chunk.stamp(-1)["position"] > start):
            yield kept(chunk, behind)
