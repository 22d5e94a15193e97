"""Losses that are not reduced beside others that are: Keras adds one number to each of theirs."""

from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

import anybatch as ab
from anybatch.train.refusals import CannotSplit
from tests.train.update_laws import largest_relative_difference

RANDOM = np.random.default_rng(4)
ROWS, BATCH, LENGTH = 20, 8, 5
X = RANDOM.normal(size=(ROWS, LENGTH, 4))
WEIGHTS = RANDOM.uniform(0.1, 2.0, size=ROWS)
PAIRS = {
    "none and a mean": (None, "sum_over_batch_size"),
    "a mean and none": ("sum_over_batch_size", "none"),
    "none and a sum": (None, "sum"),
    "none and a weighted mean": (None, "mean_with_sample_weight"),
    "none and none": (None, None),
}

pytestmark = pytest.mark.usefixtures("double_precision")


def model(reductions: tuple[Any, Any], *, by_step: bool = False) -> Any:
    """Two outputs; the first has one number per row, or one per step of each row."""
    keras.utils.set_random_seed(1)
    inputs = keras.Input((LENGTH, 4))
    hidden = layers.Dense(3, activation="tanh")(inputs)
    flat = layers.Flatten()(hidden)
    outputs = [layers.Dense(2, name="one")(hidden if by_step else flat), layers.Dense(1, name="other")(flat)]
    made = keras.Model(inputs, outputs)
    losses = [
        keras.losses.MeanSquaredError(reduction=reductions[0]),
        keras.losses.MeanAbsoluteError(reduction=reductions[1]),
    ]
    made.compile(keras.optimizers.SGD(0.001), losses, loss_weights=[0.3, 2.0])
    return made


def labels(*, by_step: bool = False) -> list[Any]:
    return [X[:, :, :2] if by_step else X[:, 0, :2], X[:, 0, :1]]


def trained(fit: Any, made: Any, **options: Any) -> list[Any]:
    by_step = len(made.outputs[0].shape) == 3
    given = {"y": labels(by_step=by_step), "sample_weight": [WEIGHTS, WEIGHTS[::-1].copy()]}
    if by_step:
        given["sample_weight"][0] = np.repeat(WEIGHTS[:, None], LENGTH, 1)
    fit(made, X, **given, batch_size=BATCH, epochs=3, shuffle=False, verbose=0, **options)
    return list(made.get_weights())


@pytest.mark.parametrize("micro", ["auto", 3])
@pytest.mark.parametrize("reductions", PAIRS.values(), ids=PAIRS)
def test_one_number_counts_as_often_as_keras_adds_it(reductions: Any, micro: Any) -> None:
    expected = trained(keras.Model.fit, model(reductions))
    found = trained(ab.fit, model(reductions), micro_batch_size=micro)
    assert largest_relative_difference(found, expected) < 1e-10


@pytest.mark.parametrize("micro", ["auto", 3])
def test_one_number_counts_once_for_every_step_of_every_row(micro: Any) -> None:
    reductions = PAIRS["none and a mean"]
    expected = trained(keras.Model.fit, model(reductions, by_step=True))
    found = trained(ab.fit, model(reductions, by_step=True), micro_batch_size=micro)
    assert largest_relative_difference(found, expected) < 1e-10


def test_losses_whose_rows_keras_adds_to_each_other_are_refused_in_parts() -> None:
    inputs = keras.Input((1, 4))
    outputs = [layers.Dense(1, name="one")(inputs), layers.Dense(1, name="other")(layers.Flatten()(inputs))]
    made = keras.Model(inputs, outputs)
    made.compile("sgd", [keras.losses.MeanSquaredError(reduction=None) for _ in outputs])
    with pytest.raises(CannotSplit, match=r"adds numbers of different rows to each other.*sum"):
        ab.fit(made, X[:, :1], [X[:, :1, :1], X[:, 0, :1]], batch_size=8, micro_batch_size=3, verbose=0)
