"""Models that do not take any number of rows, or cannot be built ahead: they train whole, as in Keras."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import anybatch as ab
from anybatch.train.refusals import CannotSplit

ROWS, BATCH = 96, 32
X = np.random.default_rng(0).normal(size=(ROWS, 10, 3)).astype("float32")
Y = X.sum((1, 2))[:, None]
WHOLE: dict[str, Any] = {"batch_size": BATCH, "epochs": 2, "shuffle": False, "verbose": 0}


class ByPairs(layers.Layer):  # type: ignore[misc]
    """Takes batches of `BATCH` rows only."""

    def call(self, inputs: Any) -> Any:
        return tf.reshape(inputs, (BATCH // 2, 2, 10, 3))[:, ::-1]


class Back(layers.Layer):  # type: ignore[misc]
    def call(self, inputs: Any) -> Any:
        return tf.reshape(inputs, (BATCH, 10, 3))


def seen_as_numbers(y_true: Any, y_pred: Any) -> Any:
    return tf.constant(abs(y_true.numpy() - y_pred.numpy()).mean())


class Counted(layers.Layer):  # type: ignore[misc]
    """Counts how often it was called, in training or not."""

    def build(self, shape: Any) -> None:
        self.calls = self.add_weight(shape=(), initializer="zeros", trainable=False)

    def call(self, inputs: Any) -> Any:
        self.calls.assign_add(1.0)
        return inputs


class OwnStep(keras.Model):  # type: ignore[misc]
    """Has no call, as adversarial models have none: only its step knows what to do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = keras.Sequential([layers.Flatten(), layers.Dense(1)])
        self.seen = keras.metrics.Mean("seen")

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self.inner(x) - y) ** 2)
        weights = self.inner.trainable_variables
        self.optimizer.apply_gradients(
            zip(tape.gradient(loss, [one.value for one in weights]), weights, strict=True)
        )
        self.seen.update_state(loss)
        return {"seen": self.seen.result()}


def compiled(made: Any, **options: Any) -> Any:
    made.compile("adam", **{"loss": "mse", **options})
    return made


MODELS: dict[str, Callable[[], Any]] = {
    "a stateful layer": lambda: compiled(
        keras.Sequential(
            [keras.Input(batch_shape=(BATCH, 10, 3)), layers.LSTM(8, stateful=True), layers.Dense(1)]
        )
    ),
    "a stateful layer that is built by its data": lambda: compiled(
        keras.Sequential([layers.LSTM(8, stateful=True), layers.Dense(1)])
    ),
    "a stateful layer that runs eagerly": lambda: compiled(
        keras.Sequential([layers.LSTM(8, stateful=True), layers.Dense(1)]),
        run_eagerly=True,
        metrics=[seen_as_numbers],
    ),
    "a layer of so many rows": lambda: compiled(
        keras.Sequential([keras.Input((10, 3)), ByPairs(), Back(), layers.Flatten(), layers.Dense(1)])
    ),
    "a metric of numbers": lambda: compiled(
        keras.Sequential([keras.Input((10, 3)), layers.Flatten(), layers.Dense(1)]),
        run_eagerly=True,
        metrics=["mae", seen_as_numbers],
    ),
    "a step without a call": lambda: compiled(OwnStep(), loss=None),
}


def made(kind: str) -> Any:
    keras.utils.set_random_seed(2)
    return MODELS[kind]()


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("limit", [{}, {"memory": "16GiB"}], ids=["no limit", "a limit"])
def test_whole_batches_train_as_keras_trains_them(kind: str, limit: dict[str, Any]) -> None:
    ours, theirs = made(kind), made(kind)
    history = ab.fit(ours, X, Y, **WHOLE, **limit)
    expected = theirs.fit(X, Y, **WHOLE)
    assert history.plan.parts == 1
    assert history.history.keys() == expected.history.keys()
    for name, values in expected.history.items():
        np.testing.assert_allclose(history.history[name], values, rtol=1e-4, err_msg=name)
    for one, other in zip(ours.get_weights(), theirs.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "kind", ["a stateful layer", "a stateful layer that is built by its data", "a layer of so many rows"]
)
def test_what_takes_no_few_rows_is_refused_where_it_would_have_to_be_split(kind: str) -> None:
    with pytest.raises(CannotSplit, match="cannot be tried on a few rows: "):
        ab.fit(made(kind), X, Y, **WHOLE, micro_batch_size=8)
    assert (
        "cannot be tried on a few rows"
        in ab.plan(made(kind), (X, Y), batch_size=BATCH, memory="16GiB").notes[0]
    )


def test_a_model_that_runs_eagerly_is_split_too() -> None:
    split = made("a metric of numbers")
    history = ab.fit(split, X, Y, **WHOLE, micro_batch_size=8)
    expected = made("a metric of numbers").fit(X, Y, **WHOLE)
    for name in ("loss", "mae", "seen_as_numbers"):
        np.testing.assert_allclose(history.history[name], expected.history[name], rtol=1e-4)


def test_building_a_model_that_runs_eagerly_moves_nothing_that_was_there() -> None:
    counted = compiled(
        keras.Sequential([keras.Input((10, 3)), layers.Flatten(), Counted(), layers.Dense(1)]),
        run_eagerly=True,
        metrics=[seen_as_numbers],
    )
    before = float(np.asarray(counted.layers[1].calls.value))
    ab.fit(counted, X, Y, **WHOLE)
    assert float(np.asarray(counted.layers[1].calls.value)) == before + 2 * ROWS / BATCH


def test_predictions_of_a_stateful_layer_that_is_built_by_its_data_are_those_of_keras() -> None:
    kind = "a stateful layer that is built by its data"
    ours, theirs = (
        ab.predict(made(kind), X, batch_size=BATCH, verbose=0),
        made(kind).predict(X, batch_size=BATCH, verbose=0),
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
