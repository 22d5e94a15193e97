"""A small model trained on a table, straight from the records: the whole of it, reading and steps."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import anybatch as ab
from benchmarks.attempt import Outcome, Proof, fields_of
from benchmarks.contenders import tf_data
from benchmarks.contenders.ours import features_of
from benchmarks.job import Job

Train = Callable[[keras.Model, Sequence[str]], Any]
"""Train a model for one epoch on the records of some shards."""


@keras.saving.register_keras_serializable("benchmarks")
class Seen(keras.metrics.Metric):
    """Counts the samples that were trained on."""

    def __init__(self) -> None:
        super().__init__(name="seen", dtype="float64")
        self.count = self.add_weight(name="count", initializer="zeros")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add the rows of one batch."""
        self.count.assign_add(keras.ops.cast(keras.ops.shape(y_true)[0], self.dtype))

    def result(self) -> Any:
        """Return how many there were."""
        return self.count.value


@dataclass(slots=True)
class FitAttempt:
    """One epoch. Building and tracing the model happen in the warm-up, on the first shard."""

    job: Job
    train: Train
    _model: Any = None

    def warm_up(self) -> None:
        """Train on the first shard."""
        self._model = model()
        self.train(self._model, self.job.shards[:1])

    def check(self) -> Proof:
        """Return how many samples an epoch has."""
        return self._epoch(model())

    def prepare(self) -> None:
        """Nothing to describe."""

    def run(self) -> Outcome:
        """Train for one epoch."""
        return Outcome(self._epoch(self._model))

    def _epoch(self, trained: Any) -> Proof:
        history = self.train(trained, self.job.shards)
        return {"records": round(history.history["seen"][-1])}


def model() -> keras.Model:
    """Return the model of the table: two layers, Adam."""
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)]
    made = keras.Sequential([keras.Input((100,)), *layers])
    made.compile("adam", "mse", metrics=[Seen()])
    return made


def ours(job: Job) -> FitAttempt:
    """`ab.fit` on an exactly shuffled stream."""
    row, label = _names(job)

    def train(trained: keras.Model, shards: Sequence[str]) -> Any:
        records = ab.read(list(shards), features_of(job)).shuffle(seed=7).batch(job.batch)
        return ab.fit(trained, records.as_supervised(row, label), verbose=0)

    return FitAttempt(job, train)


def usual(job: Job) -> FitAttempt:
    """`model.fit` on the pipeline of the articles, in file order."""
    return _keras(job, tf_data.usual(job).describe)


def best(job: Job) -> FitAttempt:
    """`model.fit` on the fastest pipeline, in any order but not shuffled."""
    return _keras(job, tf_data.best(job).describe)


def constant(job: Job) -> FitAttempt:
    """`model.fit` on the same batch again and again: what the model alone takes."""
    return FitAttempt(job, lambda trained, shards: trained.fit(_same(job, shards), verbose=0))


def ours_constant(job: Job) -> FitAttempt:
    """`ab.fit` on the very same tensors, each batch in one part."""
    return FitAttempt(job, lambda trained, shards: ab.fit(trained, _same(job, shards), verbose=0))


def _same(job: Job, shards: Sequence[str]) -> tf.data.Dataset:
    """As many batches as the shards have, all of the same tensors."""
    records = len(ab.read(list(shards), features_of(job)))
    random = np.random.default_rng(0)
    x = tf.constant(random.normal(size=(job.batch, 100)).astype("float32"))
    y = tf.constant(random.integers(0, 10, job.batch))
    steps, rest = divmod(records, job.batch)
    batches = tf.data.Dataset.from_tensors((x, y)).repeat(steps)
    if rest:
        batches = batches.concatenate(tf.data.Dataset.from_tensors((x[:rest], y[:rest])))
    # not AUTOTUNE, whose thread keeps the end of an epoch waiting for up to five seconds
    return batches.prefetch(2)


def _keras(job: Job, describe: Callable[[Sequence[str]], Iterable[Any]]) -> FitAttempt:
    row, label = _names(job)

    def train(trained: keras.Model, shards: Sequence[str]) -> Any:
        batches: Any = describe(shards)
        return trained.fit(batches.map(lambda batch: (batch[row], batch[label])), verbose=0)

    return FitAttempt(job, train)


def _names(job: Job) -> tuple[str, str]:
    row, label = (field.name for field in fields_of(job))
    return row, label
