"""WebDataset over tar files, one file per value; in one process, since its workers are PyTorch's."""

from collections.abc import Iterable, Sequence
from typing import Any

import webdataset

from benchmarks.attempt import SHUFFLE_RECORDS, BatchAttempt, fields_of
from benchmarks.digest import Columns
from benchmarks.job import Job


def in_order(job: Job) -> BatchAttempt:
    """Read archive after archive."""
    return _attempt(job, buffer=0)


def shuffled(job: Job) -> BatchAttempt:
    """Shuffle the archives, and their records in a buffer."""
    return _attempt(job, buffer=SHUFFLE_RECORDS)


def _attempt(job: Job, *, buffer: int) -> BatchAttempt:
    fields = fields_of(job)
    names = [field.name for field in fields]
    files = [f"{field.name}.{'npy' if field.shape else 'cls'}" for field in fields]

    def describe(shards: Sequence[str]) -> Iterable[Any]:
        archives = webdataset.WebDataset(list(shards), shardshuffle=len(shards) if buffer else False)
        records = archives.shuffle(buffer) if buffer else archives
        found: Iterable[Any] = records.decode().to_tuple(*files).batched(job.batch, partial=True)
        return found

    def columns(batch: Sequence[Any]) -> Columns:
        return dict(zip(names, batch, strict=True))

    def touch(batch: Sequence[Any]) -> int:
        labels = batch[names.index("label")]
        int(labels[0])
        return len(labels)

    return BatchAttempt(job.shards, describe, touch, columns)
