"""Evaluating in parts takes what evaluating needs of a model, and nothing of what only training needs."""

from typing import Any

import keras
import numpy as np
import pytest

import anybatch as ab
from anybatch.train.refusals import CannotSplit

X = np.random.default_rng(1).normal(size=(40, 3)).astype("float32")
Y = X[:, :1]


class OwnTest(keras.Sequential):  # type: ignore[misc]
    """Has a test of its own."""

    def test_step(self, batch: Any) -> Any:
        return {**super().test_step(batch), "own": 1.0}


class OwnStep(keras.Sequential):  # type: ignore[misc]
    """Has a step of its own, and Keras' test."""

    def train_step(self, batch: Any) -> Any:
        return {**super().train_step(batch), "own": 1.0}


def made(kind: Any, optimizer: Any = "sgd") -> Any:
    keras.utils.set_random_seed(1)
    model = kind([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(optimizer, "mse", metrics=["mae"])
    return model


def test_a_test_of_the_models_own_runs_whole_and_is_not_split() -> None:
    model = made(OwnTest)
    assert ab.evaluate(model, X, Y, batch_size=40, verbose=0, return_dict=True)["own"] == 1.0
    with pytest.raises(CannotSplit, match=r"OwnTest\.test_step .*validation_batch_size"):
        ab.evaluate(model, X, Y, batch_size=40, verbose=0, micro_batch_size=7)


def test_a_model_with_a_test_of_its_own_is_trained_in_parts() -> None:
    history = ab.fit(
        made(OwnTest),
        X,
        Y,
        batch_size=40,
        micro_batch_size=10,
        validation_data=(X, Y),
        validation_batch_size=10,
        verbose=0,
    )
    assert history.history["val_own"] == [1.0]
    assert history.plan.parts == 4


def test_a_step_of_the_models_own_does_not_stop_a_test_in_parts() -> None:
    model = made(OwnStep)
    expected = model.evaluate(X, Y, batch_size=40, verbose=0)
    assert ab.evaluate(model, X, Y, batch_size=40, verbose=0, micro_batch_size=7) == pytest.approx(expected)


def test_an_optimizer_that_accumulates_does_not_stop_a_test() -> None:
    model = made(keras.Sequential, keras.optimizers.SGD(gradient_accumulation_steps=4))
    expected = model.evaluate(X, Y, verbose=0)
    assert ab.evaluate(model, X, Y, verbose=0, micro_batch_size=7) == pytest.approx(expected)
