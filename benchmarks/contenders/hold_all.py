"""Everything in memory: arrays that are loaded first, and tf.data's cache."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.attempt import SHUFFLE_RECORDS, BatchAttempt, fields_of
from benchmarks.contenders import tf_data
from benchmarks.job import Job

Arrays = dict[str, Any]


def arrays(job: Job) -> BatchAttempt:
    """Load all records into NumPy arrays, then take batches of them in random order."""
    load = tf_data.best_fixed(job)

    def describe(shards: Sequence[str]) -> Iterator[Arrays]:
        loaded = [load.columns(batch) for batch in load.describe(shards)]
        whole = {name: np.concatenate([part[name] for part in loaded]) for name in loaded[0]}  # type: ignore[arg-type]
        del loaded
        order = np.random.default_rng(7).permutation(len(whole["label"]))
        for start in range(0, len(order), job.batch):
            yield {name: column[order[start : start + job.batch]] for name, column in whole.items()}

    return BatchAttempt(job.shards, describe, lambda batch: len(batch["label"]), lambda batch: batch)


def cached(job: Job) -> BatchAttempt:
    """Parse once, `cache()`, then shuffle records: what the articles advise for speed."""
    parse = tf_data.record_parser(fields_of(job))

    def describe(shards: Sequence[str]) -> Any:
        rows = tf.data.TFRecordDataset(list(shards)).map(parse, num_parallel_calls=tf_data.AUTOTUNE)
        shuffled = rows.cache().shuffle(SHUFFLE_RECORDS)
        return shuffled.batch(job.batch).prefetch(tf_data.AUTOTUNE)

    return tf_data.attempt(job, describe)
