"""A step is traced once for batches of any number of rows, or for those it wants to know."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import anybatch as ab
from anybatch.train.backends.tensorflow_rows import ForAnyRows

SIZES = (3, 5, 1)


def rows(count: int) -> Any:
    return tf.reshape(tf.range(2.0 * count), (count, 2))


KINDS: dict[str, Callable[[int], Any]] = {
    "a tensor": rows,
    "labels and no weights": lambda count: (rows(count), rows(count)[:, 0], None),
    "a mapping": lambda count: {"left": rows(count), "right": tf.constant(2.0)},
    "a ragged tensor": lambda count: tf.RaggedTensor.from_row_lengths(
        tf.range(float(count + 1)), [1] * (count - 1) + [2]
    ),
    "a sparse tensor": lambda count: tf.sparse.from_dense(rows(count)),
}


def total(batch: Any) -> Any:
    leaves = [leaf for leaf in tf.nest.flatten(batch, expand_composites=True) if leaf is not None]
    return tf.add_n([tf.reduce_sum(tf.cast(leaf, tf.float32)) for leaf in leaves])


@pytest.mark.parametrize("kind", KINDS)
def test_one_trace_takes_batches_of_every_size(kind: str) -> None:
    traced = []

    def step(batch: Any, share: Any) -> Any:
        traced.append(batch)
        return share * total(batch)

    function = ForAnyRows(step)
    for count in SIZES:
        batch = KINDS[kind](count)
        assert float(function(batch, tf.constant(0.5))) == pytest.approx(0.5 * float(total(batch)))
    assert len(traced) == 1


def test_a_step_that_wants_to_know_its_rows_is_traced_for_them() -> None:
    function = ForAnyRows(lambda batch: tf.add_n([batch[row] for row in range(batch.shape[0])]))
    for count in SIZES:
        np.testing.assert_array_equal(function(rows(count)), tf.reduce_sum(rows(count), 0))


def test_a_step_that_fails_says_why() -> None:
    def step(batch: Any) -> Any:
        raise KeyError("nothing of that name")

    with pytest.raises(KeyError, match="nothing of that name"):
        ForAnyRows(step)(rows(2))


class Counting(keras.layers.Dense):  # type: ignore[misc]
    """Counts how often Python runs it in training: once per trace."""

    calls = 0

    def call(self, inputs: Any, training: bool = False) -> Any:
        self.calls += bool(training)
        return super().call(inputs)


def test_a_short_last_batch_costs_no_trace() -> None:
    calls = []
    for count in (16, 20):
        counting = Counting(1)
        model = keras.Sequential([keras.Input((2,)), counting])
        model.compile("sgd", "mse")
        ab.fit(model, np.ones((count, 2)), np.ones((count, 1)), batch_size=8, verbose=0)
        calls.append(counting.calls)
    assert calls[0] == calls[1]
