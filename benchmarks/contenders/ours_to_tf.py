"""anybatch behind `to_tf`: what somebody gets who stays with tf.data."""

from collections.abc import Sequence
from typing import Any

import anybatch as ab
from benchmarks.attempt import BatchAttempt
from benchmarks.contenders import tf_data
from benchmarks.contenders.ours import features_of
from benchmarks.job import Job


def shuffled(job: Job) -> BatchAttempt:
    """Read in an exactly shuffled order, as a `tf.data.Dataset`."""

    def describe(shards: Sequence[str]) -> Any:
        return ab.read(list(shards), features_of(job)).shuffle(seed=7).batch(job.batch).to_tf()

    return tf_data.attempt(job, describe)
