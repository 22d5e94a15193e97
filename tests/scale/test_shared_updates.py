"""Several workers make the updates of one process where some have no rows, or one is told to stop.

They are threads here: what they send has to have one shape everywhere, or real ones would wait for ever.
"""

import keras
import numpy as np
import pytest
from keras import layers, ops

import anybatch as ab
from anybatch.train.refusals import CannotSplit
from tests.scale.beside_each_other import together

RANDOM = np.random.default_rng(1)
ROWS, BATCH = 13, 6
"""The last batch has one row: the second worker has none."""
X, Y = (RANDOM.normal(size=(ROWS, size)).astype("float32") for size in (5, 2))
WEIGHTS = RANDOM.uniform(0.2, 2.0, ROWS).astype("float32")
LENGTHS = RANDOM.permutation(ROWS) % 7 + 1
CLOSE = 1e-5


def root_mean_square(y_true, y_pred):
    """One number per batch: it does not add up over parts."""
    return ops.sqrt(ops.mean(ops.square(y_true - y_pred)))


class Largest(keras.metrics.Metric):
    """It does not add up over workers."""

    def __init__(self, name="largest"):
        super().__init__(name=name)
        self.top = self.add_variable((), "zeros", name="top")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.top.assign(ops.maximum(self.top, ops.max(ops.abs(y_pred))))

    def result(self):
        return self.top


class Watching(layers.Layer):
    """Keeps a metric of its own, and an average that every part moves."""

    def __init__(self):
        super().__init__()
        self.seen = Largest("seen")
        self.average = self.add_weight(shape=(), initializer="ones", trainable=False, name="average")

    def call(self, inputs, training=False):
        self.seen.update_state(None, inputs)
        if training:
            self.average.assign(0.9 * self.average + 0.1 * ops.mean(ops.abs(inputs)))
        return inputs


class StopsAt(keras.callbacks.Callback):
    """Tells one worker alone to stop."""

    def __init__(self, update, *, mine):
        super().__init__()
        self._update = update if mine else -1
        self.begun = 0

    def on_train_batch_begin(self, batch, logs=None):
        self.begun += 1

    def on_train_batch_end(self, batch, logs=None):
        if int(self.model.optimizer.iterations) == self._update:
            self.model.stop_training = True


def dense(*more, **options):
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((5,)), layers.Dense(4, activation="tanh"), *more, layers.Dense(2)])
    model.compile(keras.optimizers.Adam(0.01), "mse", **options)
    return model


def found(model, data, **options):
    history = ab.fit(model, data, epochs=2, verbose=0, **options).history
    return [*model.get_weights(), *map(np.array, history.values())], model.history


def assert_close(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=CLOSE, atol=CLOSE)


def weighted(rank):
    """Trained on with weights, validated on without; one worker is told to stop in the second epoch."""
    callback = StopsAt(5, mine=rank != 0)
    values, history = found(
        dense(metrics=[root_mean_square]),
        ab.from_arrays((X, Y, WEIGHTS)).shuffle(seed=2).batch(BATCH),
        validation_data=(X[:7], Y[:7]),
        validation_batch_size=3,
        callbacks=[callback],
        micro_batch_size=3,
    )
    assert history.model.stop_training
    assert int(history.model.optimizer.iterations) == 5
    # the first one has begun one more, and learnt that it was not to be
    assert callback.begun == 5 + (rank == 0)
    return values, history


def padded(rank):
    """Sentences of any length, and a metric that has to see all of them."""
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((None, 1)), layers.Dense(1)])
    model.compile("adam", "mse", metrics=[Largest()])
    rows = ab.from_arrays({"id": np.arange(ROWS)}).map(
        lambda one: {name: np.sin(np.arange(LENGTHS[one["id"]]) + float(one["id"]))[:, None] for name in "xy"}
    )
    return found(model, rows.batch(BATCH).as_supervised("x", "y"), micro_batch_size=3)


@pytest.mark.filterwarnings("ignore:each of")
@pytest.mark.parametrize("case", [weighted, padded])
def test_workers_without_rows_and_workers_told_to_stop_change_nothing(case, monkeypatch):
    alone, _ = case(None)
    for values, _ in together(2, case, monkeypatch):
        assert_close(values, alone)


class OwnStep(keras.Sequential):
    def train_step(self, data):
        return super().train_step(data)


def test_what_cannot_be_split_is_trained_in_one_process(monkeypatch):
    def train(rank):
        model = OwnStep([keras.Input((5,)), layers.Dense(2)])
        model.compile("sgd", "mse")
        with pytest.raises(CannotSplit, match=r"train_step cannot be split: .*train it in one process"):
            ab.fit(model, ab.from_arrays((X, Y)).batch(BATCH), verbose=0, micro_batch_size=3)
        return rank

    assert together(2, train, monkeypatch) == [0, 1]


def test_what_does_not_add_up_is_the_same_on_all_workers(monkeypatch):
    """A metric and an average that a layer keeps: no update is exact then, but workers must not part."""

    def train(rank):
        model = dense(Watching(), layers.SpectralNormalization(layers.Dense(4)))
        return found(model, ab.from_arrays((X, Y)).batch(BATCH), micro_batch_size=[1, 3][rank])

    (first, history), (second, _) = together(2, train, monkeypatch)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not history.plan.exact
    assert any("`seen`" in note and "what worker 0 has seen" in note for note in history.plan.notes)
    assert history.history["seen"][-1] <= 1.0
