"""tf.data: JPEG files decoded and resized record by record, on all cores, in any order."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import tensorflow as tf

from benchmarks.attempt import CallAttempt, Proof, fields_of
from benchmarks.contenders.tf_data import AUTOTUNE, BUFFER_BYTES, Tensors, feature
from benchmarks.job import Job

Decode = Callable[[Any], Any]


def resized(job: Job) -> CallAttempt:
    """Decode at full size, resize as `tf.image.resize` does unless told otherwise: it skips pixels."""
    return _attempt(job, lambda file, size: tf.image.resize(tf.io.decode_jpeg(file, 3), size))


def antialiased(job: Job) -> CallAttempt:
    """Decode at full size, resize with every pixel counted: what anybatch does."""
    return _attempt(job, lambda file, size: tf.image.resize(tf.io.decode_jpeg(file, 3), size, antialias=True))


def halved(job: Job) -> CallAttempt:
    """Decode at half size, which a user has to know is enough, then resize."""
    return _attempt(job, lambda file, size: tf.image.resize(tf.io.decode_jpeg(file, 3, ratio=2), size))


def _attempt(job: Job, decode: Callable[[Any, tuple[int, int]], Any]) -> CallAttempt:
    (height, width, _), *_ = (field.shape for field in fields_of(job) if field.kind == "jpeg")
    return CallAttempt(job.shards, partial(_decode_all, job, partial(decode, size=(height, width))))


def _decode_all(job: Job, decode: Decode, shards: Sequence[str]) -> Proof:
    return {"records": sum(len(batch["label"].numpy()) for batch in _pipeline(job, decode, shards))}


def _pipeline(job: Job, decode: Decode, shards: Sequence[str]) -> Any:
    features = {field.name: feature(field, lists=tf.io.VarLenFeature) for field in fields_of(job)}

    def parse(serialized: Any) -> Tensors:
        row = tf.io.parse_single_example(serialized, features)
        return row | {"image": tf.cast(decode(row["image"]), tf.uint8)}

    rows = tf.data.TFRecordDataset(list(shards), buffer_size=BUFFER_BYTES)
    decoded = rows.map(parse, num_parallel_calls=AUTOTUNE, deterministic=False)
    return decoded.batch(job.batch, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)
