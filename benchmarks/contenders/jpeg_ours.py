"""anybatch: JPEG files decoded and resized, and every pixel compared with TensorFlow's before timing."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

import anybatch as ab
from benchmarks.attempt import BatchAttempt, Outcome, Proof
from benchmarks.contenders.ours import features_of, in_order
from benchmarks.job import Job

# what the documentation of `ab.Image` states for JPEG files that are made smaller
MEAN_TOLERANCE, TOLERANCE_AT_99_PERCENT = 2.5, 9.0


@dataclass(slots=True)
class Compared:
    """The batches of a stream; checking means comparing with TensorFlow."""

    job: Job
    batches: BatchAttempt

    def warm_up(self) -> None:
        """Read the first shard."""
        self.batches.warm_up()

    def check(self) -> Proof:
        """Refuse an image that differs from TensorFlow's by more than is stated."""
        records = 0
        for ours, file in zip(_images(self.job), _files(self.job.shards), strict=True):
            compare(ours, file)
            records += 1
        return {"records": records}

    def prepare(self) -> None:
        """Describe the stream."""
        self.batches.prepare()

    def run(self) -> Outcome:
        """Take every batch."""
        return self.batches.run()


def decoded(job: Job) -> Compared:
    """Decode and resize in file order."""
    return Compared(job, in_order(job))


def compare(ours: Any, file: bytes) -> None:
    """Raise if an image is not TensorFlow's within the tolerance."""
    tf: Any = import_module("tensorflow")
    theirs = tf.image.resize(tf.io.decode_jpeg(file, 3), ours.shape[:2], antialias=True).numpy()
    difference = np.abs(ours - theirs)
    mean, at_99 = float(difference.mean()), float(np.percentile(difference, 99))
    if mean > MEAN_TOLERANCE or at_99 > TOLERANCE_AT_99_PERCENT:
        raise AssertionError(f"an image differs from TensorFlow's by {mean:.2f}, by {at_99:.2f} at 99 %")


def _images(job: Job) -> Any:
    for batch in ab.read(list(job.shards), features_of(job)).batch(job.batch):
        yield from batch["image"]


def _files(shards: Sequence[str]) -> Any:
    for batch in ab.read(list(shards), {"image": ab.Bytes()}).batch(64):
        yield from batch["image"].to_list()
