"""The reader `tfrecord` of PyPI: records one by one through protobuf, stacked into batches."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import tfrecord

from benchmarks.attempt import SHUFFLE_RECORDS, BatchAttempt, fields_of, touch
from benchmarks.datasets import Field
from benchmarks.digest import Columns, Lists
from benchmarks.job import Job

KINDS = {"raw": "byte", "bytes": "byte", "numbers": "float", "ragged": "int"}
Row = dict[str, Any]


def in_order(job: Job) -> BatchAttempt:
    """Read shard after shard."""
    return _attempt(job, buffer=0)


def shuffled(job: Job) -> BatchAttempt:
    """Read shard after shard, through the shuffling buffer of the package."""
    return _attempt(job, buffer=SHUFFLE_RECORDS)


def _attempt(job: Job, *, buffer: int) -> BatchAttempt:
    fields = fields_of(job)

    def describe(shards: Sequence[str]) -> Iterable[Row]:
        rows: Iterator[Row] = iter(_records(fields, shards))
        if buffer:
            rows = tfrecord.iterator_utils.shuffle_iterator(rows, buffer)
        while some := list(islice(rows, job.batch)):
            yield {field.name: _stacked(field, [row[field.name] for row in some]) for field in fields}

    return BatchAttempt(job.shards, describe, touch, _columns)


def _records(fields: tuple[Field, ...], shards: Sequence[str]) -> Iterator[Row]:
    wanted = {field.name: _kind(field) for field in fields}
    for shard in shards:
        yield from tfrecord.tfrecord_loader(shard, None, wanted)


def _kind(field: Field) -> str:
    return "int" if field.dtype == "int64" else KINDS[field.kind]


def _stacked(field: Field, values: list[Any]) -> Any:
    match field.kind:
        case "raw":
            pixels = [np.frombuffer(value, field.dtype) for value in values]
            return np.stack(pixels).reshape(-1, *field.shape)
        case "bytes":
            return Lists.of_bytes(values)
        case "ragged":
            return Lists.of_lengths(np.concatenate(values), np.array([len(value) for value in values]))
        case _:
            return np.stack(values).reshape(-1, *field.shape)


def _columns(batch: Row) -> Columns:
    return batch
