"""anybatch: batches in file order, the index, and the opening of many shards."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anybatch as ab
from anybatch._native import Scan
from benchmarks.attempt import BatchAttempt, CallAttempt, Outcome, Proof, fields_of, touch
from benchmarks.datasets import Field
from benchmarks.digest import Columns, Lists
from benchmarks.job import Job
from benchmarks.machine import cores

SLICE_BYTES = 64 << 20
Batch = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FirstSight:
    """A stream that is opened only when it is iterated, so that opening is on the clock."""

    open: Callable[[], Any]

    def __iter__(self) -> Iterator[Batch]:
        return iter(self.open())


def in_order(job: Job) -> BatchAttempt:
    """Read in file order; an index lies beside the shards if anybatch left one there."""
    return _batches(job, partial(_stream, job))


def first_sight(job: Job) -> BatchAttempt:
    """Read in file order what anybatch has never seen: no index, and opening is on the clock."""
    attempt = _batches(job, lambda shards: FirstSight(partial(_stream, job, shards)))
    attempt.before_run = partial(forget_indexes, job.shards)
    return attempt


def shuffled_first_sight(job: Job) -> BatchAttempt:
    """Shuffle exactly what anybatch has never seen: it has to be indexed first, on the clock."""
    attempt = shuffled(job)
    attempt.before_run = partial(forget_indexes, job.shards)
    return attempt


def shuffled(job: Job) -> BatchAttempt:
    """Read in an exactly shuffled order; the indexes lie beside the shards."""
    return _batches(job, lambda shards: _records(job, shards).shuffle(seed=7).batch(job.batch))


def window(job: Job) -> BatchAttempt:
    """Read in blocks of neighbours in random order, shuffled together."""
    return _batches(
        job, lambda shards: _records(job, shards).shuffle(seed=7, window="64MiB").batch(job.batch)
    )


def index_one_thread(job: Job) -> CallAttempt:
    """Index shard after shard."""
    return CallAttempt(job.shards, partial(index_all, threads=1))


def index_all_cores(job: Job) -> CallAttempt:
    """Index as many shards at a time as there are cores."""
    return CallAttempt(job.shards, partial(index_all, threads=cores()))


@dataclass(slots=True)
class OpenAttempt:
    """Open shards whose indexes lie beside them, and ask for the length."""

    job: Job

    def warm_up(self) -> None:
        """Open the first shard, so that everything is imported."""
        self._open(self.job.shards[:1])

    def check(self) -> Proof:
        """Leave the indexes behind that the timed runs find."""
        return self._open(self.job.shards)

    def prepare(self) -> None:
        """Nothing to describe."""

    def run(self) -> Outcome:
        """Open all."""
        return Outcome(self._open(self.job.shards))

    def _open(self, shards: Sequence[str]) -> Proof:
        return {"records": len(ab.read(list(shards), features_of(self.job)))}


def open_indexed(job: Job) -> OpenAttempt:
    """Open shards with fresh indexes."""
    return OpenAttempt(job)


def index_all(shards: Sequence[str], *, threads: int) -> Proof:
    """Return how many records there are, by indexing every shard; nothing is saved."""
    if threads == 1:
        return {"records": sum(map(index_shard, shards))}
    with ThreadPoolExecutor(threads) as pool:
        return {"records": sum(pool.map(index_shard, shards))}


def index_shard(path: str) -> int:
    """Return how many records one shard has."""
    scan = Scan(path, "")
    while scan.advance(SLICE_BYTES):
        pass
    return scan.finish().records


def forget_indexes(shards: Sequence[str]) -> None:
    """Remove the dot-files beside the shards, which are the benchmark's own copies."""
    for folder in {Path(shard).parent for shard in shards}:
        for sidecar in folder.glob(".*"):
            sidecar.unlink()


def features_of(job: Job) -> dict[str, Any]:
    """Return the fields in anybatch's words."""
    return {field.name: _feature(field) for field in fields_of(job)}


def _records(job: Job, shards: Sequence[str]) -> Any:
    return ab.read(list(shards), features_of(job))


def _stream(job: Job, shards: Sequence[str]) -> Any:
    return _records(job, shards).batch(job.batch)


def _batches(job: Job, describe: Callable[[Sequence[str]], Any]) -> BatchAttempt:
    return BatchAttempt(job.shards, describe, touch, partial(_columns, fields_of(job)))


def _feature(field: Field) -> Any:
    match field.kind:
        case "numbers":
            return ab.Numbers(field.dtype, field.shape)
        case "raw":
            return ab.Raw(field.dtype, field.shape)
        case "ragged":
            return ab.Ragged(field.dtype)
        case "bytes":
            return ab.Bytes()
        case "jpeg":
            return ab.Image(*field.shape)


def _columns(fields: tuple[Field, ...], batch: Batch) -> Columns:
    return {field.name: _column(field, batch[field.name]) for field in fields}


def _column(field: Field, value: Any) -> Any:
    if field.kind == "bytes":
        return Lists.of_bytes(value.to_list())
    return Lists(value.values, value.offsets) if field.kind == "ragged" else value
