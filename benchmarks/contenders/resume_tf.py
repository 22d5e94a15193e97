"""tf.data: going on from a checkpoint of the iterator, or by skipping what was seen."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from benchmarks.attempt import SHUFFLE_RECORDS, BatchAttempt, fields_of
from benchmarks.contenders import tf_data
from benchmarks.job import Job
from benchmarks.resume import ResumeAttempt, Saved, half_of


def checkpoint(job: Job) -> ResumeAttempt:
    """Keep the iterator with its shuffling buffer in a checkpoint, and read it again."""
    return ResumeAttempt(tf_data.best_shuffled(job), half_of(job), save_iterator, restore_iterator)


def skip(job: Job) -> ResumeAttempt:
    """Keep a number, and pass over that many batches of the same order; this needs a seed."""
    return ResumeAttempt(_repeatable(job), half_of(job), save_count, restore_by_skipping)


def save_iterator(iterator: Any, _: int) -> Saved:
    """Write a checkpoint; the folder goes with the process."""
    folder = Path(tempfile.mkdtemp(prefix="anybatch-bench-"))
    prefix = tf.train.Checkpoint(iterator=iterator).write(str(folder / "state"))
    return Saved(prefix, sum(file.stat().st_size for file in folder.iterdir()))


def restore_iterator(batches: Any, prefix: str) -> Iterator[Any]:
    """Return an iterator that goes on where the checkpoint was written."""
    iterator: Iterator[Any] = iter(batches)
    tf.train.Checkpoint(iterator=iterator).read(prefix)
    return iterator


def save_count(_: Any, taken: int) -> Saved:
    """Keep how many batches were taken."""
    return Saved(taken, 8)


def restore_by_skipping(batches: Any, taken: int) -> Iterator[Any]:
    """Return an iterator without the first batches, which are made all the same."""
    rest: Iterator[Any] = iter(batches.skip(taken))
    return rest


def _repeatable(job: Job) -> BatchAttempt:
    parse = tf_data.batch_parser(fields_of(job))

    def describe(shards: Sequence[str]) -> Any:
        records = tf.data.TFRecordDataset(
            list(shards), buffer_size=tf_data.BUFFER_BYTES, num_parallel_reads=tf_data.AUTOTUNE
        )
        shuffled = records.shuffle(SHUFFLE_RECORDS, seed=7, reshuffle_each_iteration=False)
        batches = shuffled.batch(job.batch, num_parallel_calls=tf_data.AUTOTUNE)
        return batches.map(parse, num_parallel_calls=tf_data.AUTOTUNE).prefetch(tf_data.AUTOTUNE)

    return tf_data.attempt(job, describe)
