"""tf.data: as articles write it, as fast as we could make it, and that in file order."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.attempt import SHUFFLE_RECORDS, BatchAttempt, CallAttempt, Proof, fields_of, touch
from benchmarks.datasets import Field
from benchmarks.digest import Columns, Lists
from benchmarks.job import Job
from benchmarks.machine import cores

AUTOTUNE = tf.data.AUTOTUNE
BUFFER_BYTES = 1 << 20
COUNTED_AT_ONCE = 1024
Tensors = dict[str, Any]


def usual(job: Job) -> BatchAttempt:
    """Parse record by record, then batch; lists are padded."""
    fields = fields_of(job)
    parse = record_parser(fields)

    def describe(shards: Sequence[str]) -> Any:
        rows = tf.data.TFRecordDataset(list(shards)).map(parse)
        ragged = any(field.kind == "ragged" for field in fields)
        batches = rows.padded_batch(job.batch) if ragged else rows.batch(job.batch)
        return batches.prefetch(AUTOTUNE)

    return attempt(job, describe)


def best(job: Job) -> BatchAttempt:
    """Read shards side by side, move batches only, parse whole batches; in any order, tuned by tf.data.

    Batching inside the interleave and `rebatch` after it hand over whole batches instead of single
    records: on `floats` about twice the speed of `interleave → batch → parse`. In trials on a busy
    two-core machine no gain was seen from private pools, other buffer sizes, fewer shards at a time
    or one thread per operation.
    """
    return _any_order(job, calls=AUTOTUNE, ready_batches=AUTOTUNE)


def vectorised(job: Job) -> BatchAttempt:
    """Read shards side by side, batch, then parse whole batches: what tf.data's own guide advises."""
    parse = batch_parser(fields_of(job))
    options = tf.data.Options()
    options.deterministic = False

    def describe(shards: Sequence[str]) -> Any:
        batches = side_by_side_records(shards).batch(job.batch, num_parallel_calls=AUTOTUNE)
        parsed = batches.map(parse, num_parallel_calls=AUTOTUNE, deterministic=False)
        return parsed.prefetch(AUTOTUNE).with_options(options)

    return attempt(job, describe)


def best_fixed(job: Job) -> BatchAttempt:
    """Do the same with one call per core from the start, since AUTOTUNE takes a while to get there."""
    return _any_order(job, calls=cores(), ready_batches=4)


def best_shuffled(job: Job) -> BatchAttempt:
    """Read shards side by side, shuffle records in the usual buffer, then parse whole batches."""
    return _shuffled(job, SHUFFLE_RECORDS)


def best_shuffled_300(job: Job) -> BatchAttempt:
    """Do the same with a buffer that fits into little memory where records are large."""
    return _shuffled(job, 300)


def _shuffled(job: Job, buffer_records: int) -> BatchAttempt:
    parse = batch_parser(fields_of(job))
    options = tf.data.Options()
    options.deterministic = False

    def describe(shards: Sequence[str]) -> Any:
        records = side_by_side_records(shards).shuffle(buffer_records)
        batches = records.batch(job.batch, num_parallel_calls=AUTOTUNE)
        parsed = batches.map(parse, num_parallel_calls=AUTOTUNE, deterministic=False)
        return parsed.prefetch(AUTOTUNE).with_options(options)

    return attempt(job, describe)


def best_in_order(job: Job) -> BatchAttempt:
    """Read shard after shard, parse whole batches on all cores, keep the order."""
    parse = batch_parser(fields_of(job))

    def describe(shards: Sequence[str]) -> Any:
        raw = tf.data.TFRecordDataset(list(shards), buffer_size=BUFFER_BYTES)
        batches = raw.batch(job.batch, num_parallel_calls=AUTOTUNE)
        return batches.map(parse, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)

    return attempt(job, describe)


def count(job: Job) -> CallAttempt:
    """Count records: what it takes to know the number of steps without an index."""
    return CallAttempt(job.shards, count_records)


def count_records(shards: Sequence[str]) -> Proof:
    """Return how many records there are, by reading all of them inside tf.data, batch by batch."""
    batches = side_by_side(shards, COUNTED_AT_ONCE, AUTOTUNE)
    return {"records": int(batches.reduce(np.int64(0), lambda seen, batch: seen + tf.size(batch, tf.int64)))}


def side_by_side_records(shards: Sequence[str]) -> Any:
    """Read shards at the same time, record by record; they come in any order."""
    return tf.data.Dataset.from_tensor_slices(list(shards)).interleave(
        lambda file: tf.data.TFRecordDataset(file, buffer_size=BUFFER_BYTES),
        cycle_length=min(16, len(shards)),
        num_parallel_calls=AUTOTUNE,
        deterministic=False,
    )


def side_by_side(shards: Sequence[str], batch: int, calls: int) -> Any:
    """Read shards at the same time, each in batches of its own; they come in any order."""
    at_a_time = min(16, len(shards))
    return tf.data.Dataset.from_tensor_slices(list(shards)).interleave(
        lambda file: tf.data.TFRecordDataset(file, buffer_size=BUFFER_BYTES).batch(batch),
        cycle_length=at_a_time,
        num_parallel_calls=min(calls, at_a_time),  # AUTOTUNE is -1
        deterministic=False,
    )


def _any_order(job: Job, *, calls: int, ready_batches: int) -> BatchAttempt:
    parse = batch_parser(fields_of(job))
    options = tf.data.Options()
    options.deterministic = False
    options.autotune.enabled = calls == AUTOTUNE

    def describe(shards: Sequence[str]) -> Any:
        raw = side_by_side(shards, job.batch, calls).rebatch(job.batch)
        parsed = raw.map(parse, num_parallel_calls=calls, deterministic=False)
        return parsed.prefetch(ready_batches).with_options(options)

    return attempt(job, describe)


def attempt(job: Job, describe: Callable[[Sequence[str]], Any]) -> BatchAttempt:
    """Return the pipeline with the way to look into its batches."""
    return BatchAttempt(job.shards, describe, touch, columns_reader(fields_of(job)))


def record_parser(fields: tuple[Field, ...]) -> Callable[[Any], Tensors]:
    """Return the function that articles map over single records."""
    features = {field.name: feature(field, lists=tf.io.VarLenFeature) for field in fields}

    def parse(serialized: Any) -> Tensors:
        row = tf.io.parse_single_example(serialized, features)
        return {field.name: finished_record(field, row[field.name]) for field in fields}

    return parse


def finished_record(field: Field, value: Any) -> Any:
    """Decode what the parser left as bytes or as a sparse list."""
    if field.kind == "raw":
        return tf.reshape(tf.io.decode_raw(value, field.dtype), field.shape)
    return tf.sparse.to_dense(value) if field.kind == "ragged" else value


def batch_parser(fields: tuple[Field, ...]) -> Callable[[Any], Tensors]:
    """Return the function that parses a batch of serialized records at once."""
    features = {field.name: feature(field, lists=tf.io.RaggedFeature) for field in fields}

    def parse(serialized: Any) -> Tensors:
        rows = tf.io.parse_example(serialized, features)
        return {field.name: finished_batch(field, rows[field.name]) for field in fields}

    return parse


def finished_batch(field: Field, value: Any) -> Any:
    """Decode a whole column that the parser left as bytes."""
    if field.kind != "raw":
        return value
    return tf.reshape(tf.io.decode_raw(value, field.dtype), (-1, *field.shape))


def feature(field: Field, *, lists: Callable[[Any], Any]) -> Any:
    """Return the field in TensorFlow's words."""
    if field.kind == "ragged":
        return lists(tf.as_dtype(field.dtype))
    if field.kind == "numbers":
        return tf.io.FixedLenFeature(field.shape, field.dtype)
    return tf.io.FixedLenFeature((), tf.string)


def columns_reader(fields: tuple[Field, ...]) -> Callable[[Tensors], Columns]:
    """Return the function that turns a batch into NumPy columns."""
    return lambda batch: {field.name: column(field, batch[field.name]) for field in fields}


def column(field: Field, value: Any) -> Any:
    """Return one column as the digest wants it."""
    if field.kind == "bytes":
        return Lists.of_bytes(value.numpy().tolist())
    if isinstance(value, tf.RaggedTensor):
        return Lists(value.values.numpy(), value.row_splits.numpy())
    return without_padding(value.numpy()) if field.kind == "ragged" else value.numpy()


def without_padding(padded: Any) -> Lists:
    """Return the lists without their padding, which is 0 and never a token."""
    real = padded != 0
    return Lists.of_lengths(padded[real], real.sum(axis=1))
