"""Grain over TFRecord: records one by one through protobuf, in worker processes, as its guide has it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import grain
import numpy as np
from tfrecord import example_pb2

from benchmarks.attempt import BatchAttempt, fields_of, touch
from benchmarks.datasets import Field
from benchmarks.digest import Columns
from benchmarks.job import Job
from benchmarks.machine import cores

WINDOW = 10_000
Row = dict[str, Any]


def in_order(job: Job) -> BatchAttempt:
    """Read shard after shard."""
    return _attempt(job, lambda records: records)


def shuffled(job: Job) -> BatchAttempt:
    """Shuffle within a window, which is all that Grain has for files without random access."""

    def windowed(records: Any) -> Any:
        return grain.experimental.WindowShuffleIterDataset(records, window_size=WINDOW, seed=7)

    return _attempt(job, windowed)


def _attempt(job: Job, ordered: Callable[[Any], Any]) -> BatchAttempt:
    fields = fields_of(job)
    parse = parser(fields)

    def describe(shards: Sequence[str]) -> Iterable[Row]:
        files = grain.MapDataset.source(list(shards))
        records = grain.experimental.InterleaveIterDataset(
            files.map(grain.experimental.TFRecordIterDataset), cycle_length=1
        )
        batches = ordered(records).map(parse).batch(job.batch)
        workers = grain.MultiprocessingOptions(num_workers=min(cores(), len(shards)))
        found: Iterable[Row] = batches.mp_prefetch(workers)
        return found

    return BatchAttempt(job.shards, describe, touch, columns)


def parser(fields: tuple[Field, ...]) -> Callable[[bytes], Row]:
    """Return the function that reads one message."""

    def parse(record: bytes) -> Row:
        features = example_pb2.Example.FromString(record).features.feature
        return {field.name: _value(field, features[field.name]) for field in fields}

    return parse


def _value(field: Field, feature: Any) -> Any:
    if field.kind == "raw":
        return np.frombuffer(feature.bytes_list.value[0], field.dtype).reshape(field.shape)
    values = feature.float_list.value if field.dtype == "float32" else feature.int64_list.value
    return np.array(values, field.dtype).reshape(field.shape)


def columns(batch: Row) -> Columns:
    """Return the batch: it is NumPy already."""
    return batch
