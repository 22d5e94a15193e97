"""What cannot run on parts says so before it runs, in `evaluate` and `predict` as in `fit`."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import anybatch as ab
from anybatch.train.refusals import CannotSplit

ROWS, BATCH = 32, 8
X = np.random.default_rng(3).normal(size=(ROWS, 5, 3)).astype("float32")
Y = X.sum((1, 2))[:, None]
PARTS: dict[str, Any] = {"batch_size": BATCH, "micro_batch_size": 3, "verbose": 0}


class InPairs(layers.Layer):  # type: ignore[misc]
    """Takes batches of `BATCH` rows only, which no shape of it tells."""

    def call(self, inputs: Any) -> Any:
        return tf.reshape(inputs, (BATCH, 15))


class OwnTest(keras.Sequential):  # type: ignore[misc]
    """Has a test of its own."""

    def test_step(self, batch: Any) -> Any:
        return {**super().test_step(batch), "own": 1.0}


MODELS = {
    "a fixed number of rows": lambda: [keras.Input(batch_shape=(BATCH, 5, 3)), layers.Flatten()],
    "a stateful layer": lambda: [keras.Input(batch_shape=(BATCH, 5, 3)), layers.LSTM(4, stateful=True)],
    "a stateful layer that is built by its data": lambda: [layers.LSTM(4, stateful=True)],
    "a layer of so many rows": lambda: [keras.Input((5, 3)), InPairs()],
}


def made(first: Any, kind: Any = keras.Sequential) -> Any:
    keras.utils.set_random_seed(2)
    model = kind([*first(), layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def looked(model: Any, **options: Any) -> list[Any]:
    return [
        ab.evaluate(model, X, Y, verbose=0, **options),
        ab.predict(model, X, verbose=0, **options),
    ]


@pytest.mark.parametrize("first", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("look", [ab.evaluate, ab.predict])
def test_parts_of_what_takes_whole_batches_only_are_refused(look: Any, first: Any) -> None:
    given = (X, Y) if look is ab.evaluate else (X,)
    with pytest.raises(
        CannotSplit, match=r"cannot be (split|tried on a few rows): .*(whole batches|build it)"
    ):
        look(made(first), *given, **PARTS)


@pytest.mark.parametrize("limit", [{}, {"memory": "16GiB"}], ids=["no limit", "a limit"])
@pytest.mark.parametrize("first", MODELS.values(), ids=MODELS)
def test_whole_batches_of_it_are_looked_at_as_keras_does(first: Any, limit: Any) -> None:
    found = looked(made(first), batch_size=BATCH, **limit)
    theirs = made(first)
    expected = [
        theirs.evaluate(X, Y, batch_size=BATCH, verbose=0),
        theirs.predict(X, batch_size=BATCH, verbose=0),
    ]
    assert found[0] == pytest.approx(expected[0], rel=1e-5)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "given",
    [(X, Y), tf.data.Dataset.from_tensor_slices((X, Y)).batch(BATCH), ab.from_arrays((X, Y)).batch(BATCH)],
    ids=["arrays", "a dataset", "a stream"],
)
def test_a_test_of_the_models_own_that_would_be_split_is_refused_before_training(given: Any) -> None:
    model = made(lambda: [keras.Input((5, 3)), layers.Flatten()], OwnTest)
    with pytest.raises(CannotSplit, match="validation_batch_size"):
        ab.fit(model, X, Y, **PARTS, validation_data=given)
    assert int(model.optimizer.iterations) == 0


def test_a_test_of_the_models_own_on_few_enough_rows_is_not_refused() -> None:
    model = made(lambda: [keras.Input((5, 3)), layers.Flatten()], OwnTest)
    history = ab.fit(model, X, Y, **PARTS, validation_data=(X[:3], Y[:3]))
    assert history.history["val_own"] == [1.0]
