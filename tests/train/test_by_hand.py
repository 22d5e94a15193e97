"""Gradients for loops written by hand, and the check of a user's own model."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers, ops

import anybatch as ab

X = tf.constant(np.random.default_rng(0).normal(size=(23, 4)).astype("float32"))
WORDS = tf.constant(np.random.default_rng(1).integers(0, 9, (23, 3)))


def model(*more: Any) -> Any:
    keras.utils.set_random_seed(2)
    return keras.Sequential([keras.Input((4,)), layers.Dense(3, activation="tanh"), *more, layers.Dense(2)])


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_gradients_in_parts_are_those_of_the_tape(reduction: str) -> None:
    made = model()
    reduce = {"mean": tf.reduce_mean, "sum": tf.reduce_sum}[reduction]

    def loss(x: Any) -> Any:
        return reduce(tf.square(made(x)))

    with tf.GradientTape() as tape:
        expected = loss(X)
    wanted = tape.gradient(expected, [variable.value for variable in made.trainable_variables])
    for _ in range(2):
        found, value = ab.gradients(
            loss, made.trainable_variables, X, reduction=reduction, micro_batch_size=5
        )
        assert float(value) == pytest.approx(float(expected), rel=1e-5)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_gradients_of_an_embedding_stay_slices() -> None:
    table = tf.Variable(tf.random.stateless_normal((9, 2), (1, 2)))

    def loss(words: Any) -> Any:
        return tf.reduce_mean(tf.square(tf.gather(table, words)))

    [found], _ = ab.gradients(loss, [table], WORDS, reduction="mean", micro_batch_size=10)
    assert isinstance(found, tf.IndexedSlices)
    assert found.values.shape[0] == WORDS.shape[0] * WORDS.shape[1]


def test_another_reduction_and_a_vector_are_refused() -> None:
    variable = tf.Variable(1.0)
    with pytest.raises(ValueError, match="reduction='max'"):
        ab.gradients(tf.reduce_max, [variable], X, reduction="max")

    def vector(x: Any) -> Any:
        return variable * x[:, 0]

    with pytest.raises(ValueError, match="one number"):
        ab.gradients(vector, [variable], X, reduction="mean")


def test_check_exact_finds_no_more_than_a_permutation_makes() -> None:
    made = model()
    made.compile("adam", "mse")
    before = made.get_weights()
    found = ab.check_exact(made, (np.asarray(X), np.zeros((23, 2))))
    assert found.exact
    assert found.largest_difference < 1e-5
    assert found.noise < 1e-5
    for one, other in zip(made.get_weights(), before, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("layer", "name"),
    [
        (layers.BatchNormalization, "batch_normalization"),
        (lambda: layers.Dropout(0.5), "dropout"),
        (lambda: layers.Lambda(lambda x: x - ops.mean(x, axis=0)), "mixes"),
    ],
)
def test_check_exact_names_what_cannot_be_split(layer: Any, name: str) -> None:
    made = model(layer())
    made.compile("adam", "mse")
    found = ab.check_exact(made, (np.asarray(X), np.zeros((23, 2))))
    assert not found.exact
    assert name in str(found)
    # one draw for all rows: what is random does not disturb the comparison, what mixes rows does
    assert (found.largest_difference > 1e-3) == (name != "dropout")
