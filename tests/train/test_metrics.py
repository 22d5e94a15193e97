"""Metrics of batches that come in parts: the values of whole batches, or a note that names the metric."""

from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

import anybatch as ab

ROWS, BATCH = 50, 16
X = np.random.default_rng(1).normal(size=(ROWS, 5)).astype("float32")
Y = (X[:, :1] > 0).astype("float32")


def model(*more: Any) -> Any:
    keras.utils.set_random_seed(4)
    return keras.Sequential([keras.Input((5,)), *more, layers.Dense(6, activation="tanh"), layers.Dense(1)])


def rmse(y_true: Any, y_pred: Any) -> Any:
    return keras.ops.sqrt(keras.ops.mean(keras.ops.square(y_true - y_pred)))


def test_a_metric_that_does_not_add_up_sees_whole_batches() -> None:
    histories = []
    for micro in ("auto", 5):
        made = model()
        made.compile("sgd", "mse", metrics=[rmse, "mae"], weighted_metrics=[rmse])
        history = ab.fit(made, X, Y, batch_size=BATCH, shuffle=False, verbose=0, micro_batch_size=micro)
        histories.append(history)
    whole, split = histories
    for name, values in whole.history.items():
        assert split.history[name] == pytest.approx(values, rel=1e-5), name
    assert any("rmse" in note for note in split.plan.notes)
    assert split.plan.exact


class Counting(layers.Layer):  # type: ignore[misc]
    """Keeps two metrics itself: one is told samples, one is told batches."""

    def __init__(self) -> None:
        super().__init__()
        self.samples, self.batches = keras.metrics.Mean(name="samples"), keras.metrics.Mean(name="batches")

    def call(self, inputs: Any) -> Any:
        lengths = keras.ops.sum(keras.ops.square(inputs), axis=1)
        self.samples.update_state(lengths)
        self.batches.update_state(keras.ops.mean(lengths))
        return inputs


def test_a_metric_that_a_layer_updates_once_per_part_is_named() -> None:
    found = []
    for micro in (BATCH, 5):
        made = model(Counting())
        made.compile("sgd", "mse", metrics=["mae"])
        found.append(ab.fit(made, X, Y, batch_size=BATCH, shuffle=False, verbose=0, micro_batch_size=micro))
    whole, split = found
    assert split.history["samples"] == pytest.approx(whole.history["samples"], rel=1e-5)
    assert split.plan.exact
    [note] = split.plan.notes
    assert "metric `batches` is updated by a layer or a loss, once per part" in note


class CountingLoss(keras.Sequential):  # type: ignore[misc]
    """Keeps a metric in its loss."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.counted = keras.metrics.Mean(name="counted")

    def compute_loss(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None, training: Any = True
    ) -> Any:
        loss = keras.ops.mean(keras.ops.square(y_pred - y))
        self.counted.update_state(loss)
        return loss


def test_a_metric_that_a_loss_updates_once_per_part_is_named() -> None:
    made = CountingLoss([keras.Input((5,)), layers.Dense(1)])
    made.compile("sgd")
    history = ab.fit(made, X, Y, batch_size=BATCH, verbose=0, micro_batch_size=5)
    assert history.plan.exact
    assert "metric `counted`" in " ".join(history.plan.notes)


class TellsMore(keras.Sequential):  # type: ignore[misc]
    """Tells more than its metrics, and not all of them."""

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        told = super().compute_metrics(x, y, y_pred, sample_weight)
        return {"loss": told["loss"], "mae": told["mae"], "double": 2 * told["mae"]}


class TellsMoreOfTwo(keras.Model):  # type: ignore[misc]
    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        told = super().compute_metrics(x, y, y_pred, sample_weight)
        return {"loss": told["loss"], "twice": 2 * told["loss"]}


def tells_more() -> Any:
    keras.utils.set_random_seed(1)
    made = TellsMore([keras.Input((4,)), keras.layers.Dense(1)])
    made.compile("sgd", "mse", metrics=["mae", "mse"])
    return made


@pytest.mark.parametrize("micro", ["auto", 3])
def test_what_a_model_tells_of_its_metrics_is_in_the_history(micro: Any) -> None:
    x = np.random.default_rng(1).normal(size=(24, 4)).astype("float32")
    given = {"x": x, "y": x[:, :1], "batch_size": 10, "epochs": 2, "shuffle": False, "verbose": 0}
    given["validation_data"] = (x[:7], x[:7, :1])
    expected = tells_more().fit(**given).history
    found = ab.fit(tells_more(), **given, micro_batch_size=micro).history
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name] == pytest.approx(values, rel=1e-5), name


def test_what_a_model_of_several_outputs_tells_is_what_evaluate_returns() -> None:
    x = np.random.default_rng(1).normal(size=(20, 4)).astype("float32")
    inputs = keras.Input((4,))
    made = TellsMoreOfTwo(inputs, [keras.layers.Dense(1)(inputs), keras.layers.Dense(1)(inputs)])
    made.compile("sgd", ["mse", "mae"])
    given = {"x": x, "y": [x[:, :1], x[:, 1:2]], "batch_size": 10, "verbose": 0, "return_dict": True}
    assert ab.evaluate(made, **given) == pytest.approx(made.evaluate(**given), rel=1e-5)
