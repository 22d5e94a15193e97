"""What is looked at before training is still there to be trained on, and may be nothing at all."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import anybatch as ab
from tests.shard_files import flipped

ROWS, BATCH = 80, 8
X = np.random.default_rng(0).normal(size=(ROWS, 4)).astype("float32")
Y = X.sum(1, keepdims=True)
LIMITS: dict[str, dict[str, Any]] = {"no limit": {}, "a limit": {"memory": "16GiB"}}


class Batches(keras.utils.PyDataset):  # type: ignore[misc]
    def __len__(self) -> int:
        return ROWS // BATCH

    def __getitem__(self, index: int) -> Any:
        rows = slice(index * BATCH, (index + 1) * BATCH)
        return X[rows], Y[rows]


def model() -> Any:
    keras.utils.set_random_seed(1)
    made = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "tanh"), keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made


def batches_ahead() -> Any:
    return Batches(workers=2, use_multiprocessing=False, max_queue_size=3)


@pytest.mark.parametrize("limit", LIMITS)
def test_batches_that_threads_make_ahead_are_trained_on_all_of_them(limit: str) -> None:
    trained, expected = model(), model()
    history = ab.fit(trained, batches_ahead(), epochs=2, shuffle=False, verbose=0, **LIMITS[limit])
    told = expected.fit(X, Y, batch_size=BATCH, epochs=2, shuffle=False, verbose=0)
    assert int(trained.optimizer.iterations) == 2 * len(Batches())
    np.testing.assert_allclose(history.history["loss"], told.history["loss"], rtol=1e-4)


@pytest.mark.parametrize("limit", LIMITS)
def test_batches_that_threads_make_ahead_are_evaluated_and_predicted_all_of_them(limit: str) -> None:
    made = model()
    found = ab.evaluate(made, batches_ahead(), verbose=0, **LIMITS[limit])
    assert found == pytest.approx(made.evaluate(X, Y, verbose=0), rel=1e-4)
    predicted = ab.predict(made, batches_ahead(), verbose=0, **LIMITS[limit])
    np.testing.assert_allclose(predicted, made.predict(X, verbose=0), rtol=1e-4, atol=1e-6)


NOTHING = {
    "a stream": lambda: ab.from_arrays((X, Y)).filter(lambda record: False).batch(BATCH),
    "a dataset": lambda: (
        tf.data.Dataset.from_tensor_slices((X, Y)).filter(lambda *_: False).batch(BATCH, drop_remainder=True)
    ),
}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("kind", NOTHING)
def test_of_data_from_which_nothing_comes_there_is_no_plan_and_nothing_to_tell(kind: str, limit: str) -> None:
    with pytest.warns(ab.AnybatchWarning, match="no rows"):
        assert ab.fit(model(), NOTHING[kind](), verbose=0, **LIMITS[limit]).history == {}
    with pytest.warns(ab.AnybatchWarning, match="no rows"):
        assert ab.evaluate(model(), NOTHING[kind](), verbose=0, **LIMITS[limit]) == []
    assert ab.plan(model(), NOTHING[kind](), memory="16GiB").predicted_peak_bytes is None


@pytest.mark.parametrize("limit", LIMITS)
def test_the_first_batch_may_be_damaged_as_a_whole(tmp_path: Path, limit: str) -> None:
    file = tmp_path / "data.tfrecord"
    ab.write(file, [{"x": x, "y": y} for x, y in zip(X, Y, strict=True)])
    content = file.read_bytes()
    length = len(content) // ROWS
    for record in range(BATCH):
        content = flipped(content, record * length + length // 2)
    file.write_bytes(content)
    features = {"x": ab.Numbers("float32", (4,)), "y": ab.Numbers("float32", (1,))}
    data = ab.read(file, features, on_corrupt="skip").batch(BATCH).as_supervised("x", "y")
    trained = model()
    history = ab.fit(trained, data, verbose=0, **LIMITS[limit])
    assert int(trained.optimizer.iterations) == ROWS // BATCH - 1
    assert history.plan.parts == 1
    assert len(history.history["loss"]) == 1
