"""What `predict` returns and tells its callbacks is what Keras does, whole and in parts."""

from typing import Any

import keras
import numpy as np
import pytest
from keras import layers, ops

import anybatch as ab
from anybatch.train.refusals import CannotSplit

X = np.random.default_rng(6).normal(size=(23, 4)).astype("float32")


class Told(keras.callbacks.Callback):  # type: ignore[misc]
    """Remembers which batches it was told of, and how many rows their outputs had."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[str, int, int]] = []

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.steps.append(("begin", batch, 0))

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        self.steps.append(("end", batch, len(logs["outputs"])))


class OfTheBatch(keras.Model):  # type: ignore[misc]
    """Besides its rows it gives something that belongs to the batch."""

    def __init__(self, beside: Any) -> None:
        super().__init__()
        self._beside = beside

    def call(self, inputs: Any) -> Any:
        return {"rows": inputs * 2, "beside": self._beside(inputs)}


BESIDE = {"a number": ops.sum, "a table": lambda _: ops.ones((3, 2)), "columns": lambda x: ops.sum(x, 0)}


@pytest.mark.parametrize("micro", ["auto", 3])
def test_callbacks_are_told_of_executions(micro: Any) -> None:
    model = keras.Sequential([keras.Input((4,)), layers.Dense(2)])
    model.compile("sgd", "mse", steps_per_execution=2)
    ours, theirs = Told(), Told()
    found = ab.predict(model, X, batch_size=5, micro_batch_size=micro, callbacks=[ours], verbose=0)
    expected = model.predict(X, batch_size=5, callbacks=[theirs], verbose=0)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert ours.steps == theirs.steps


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
def test_an_output_of_the_batch_is_given_by_batches_and_not_by_parts(beside: Any) -> None:
    model = OfTheBatch(beside)
    found = ab.predict(model, X, batch_size=10, verbose=0)
    expected = model.predict(X, batch_size=10, verbose=0)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5)
    with pytest.raises(CannotSplit, match="belongs to a batch and not to its rows"):
        ab.predict(model, X, batch_size=10, micro_batch_size=3, verbose=0)


def test_of_no_rows_nothing_can_be_predicted() -> None:
    with pytest.raises(ValueError, match="no rows: there is nothing to predict"):
        ab.predict(keras.Sequential([keras.Input((4,)), layers.Dense(2)]), X[:0], verbose=0)
