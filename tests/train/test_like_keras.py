"""What a user of Keras takes for granted, and the limits that evaluating and predicting keep."""

import json
import pickle
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import anybatch as ab
from anybatch.memory import PeakWatch, held
from anybatch.train.plan_refusals import AboveLimit

MB = 1 << 20
X = np.random.default_rng(0).normal(size=(100, 4)).astype("float32")
Y = X.sum(1, keepdims=True)
BATCHES = {
    "arrays": lambda: {"x": X, "y": Y, "batch_size": 20},
    "arrays of which the steps make batches": lambda: {"x": X, "y": Y},
    "a dataset": lambda: {"x": tf.data.Dataset.from_tensor_slices((X, Y)).batch(20)},
    "a dataset of unknown length": lambda: {
        "x": tf.data.Dataset.from_tensor_slices((X, Y)).filter(lambda *_: True).batch(20)
    },
    "a stream": lambda: {"x": ab.from_arrays((X, Y)).batch(20)},
}


def model(width: int = 3, **compiled: Any) -> Any:
    keras.utils.set_random_seed(1)
    made = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(width, activation="tanh"), keras.layers.Dense(1)]
    )
    made.compile("sgd", **{"loss": "mse", **compiled})
    return made


@pytest.mark.parametrize("kind", BATCHES)
def test_steps_that_are_a_whole_pass_train_every_epoch(kind: str) -> None:
    made = model()
    history = ab.fit(made, **BATCHES[kind](), steps_per_epoch=5, epochs=4, verbose=0)
    assert int(made.optimizer.iterations) == 20
    assert len(history.history["loss"]) == len(history.epoch) == 4


@pytest.mark.parametrize("steps", [2, 5])
@pytest.mark.parametrize("kind", ["arrays", "a dataset", "a stream"])
def test_every_epoch_is_validated_on_the_same_rows(kind: str, steps: int) -> None:
    made = model()
    made.optimizer.learning_rate = 0.0
    given = BATCHES[kind]()
    held_back = (given["x"], given["y"]) if "y" in given else given["x"]
    history = ab.fit(
        made,
        X,
        Y,
        epochs=3,
        verbose=0,
        validation_data=held_back,
        validation_batch_size=given.get("batch_size"),
        validation_steps=steps,
    )
    assert len(set(history.history["val_loss"])) == 1
    assert len(history.history["val_loss"]) == 3


def test_no_steps_are_no_number_of_steps() -> None:
    made = model()
    ab.fit(made, X, Y, batch_size=20, steps_per_epoch=0, verbose=0)
    assert int(made.optimizer.iterations) == 5


@pytest.mark.parametrize("part", [20, 7])
def test_a_model_without_anything_to_train_is_counted_and_goes_on(part: int) -> None:
    frozen = model()
    frozen.trainable = False
    frozen.compile("sgd", "mse")
    with pytest.warns(ab.AnybatchWarning, match="no trainable weights"):
        history = ab.fit(frozen, X, Y, batch_size=20, micro_batch_size=part, verbose=0)
    assert history.history["loss"] == pytest.approx([frozen.evaluate(X, Y, verbose=0)])
    assert int(frozen.optimizer.iterations) == 0


def sparse() -> tuple[Any, Any]:
    """A model of sparse rows, far more values in the first batch than in the others."""
    keras.utils.set_random_seed(1)
    inputs = keras.Input((4,), sparse=True)
    made = keras.Model(inputs, keras.layers.Dense(1)(inputs))
    made.compile(keras.optimizers.SGD(0.01), "mse")
    rows = tf.sparse.from_dense(np.where(np.arange(100)[:, None] < 20, X + 9, X * (X > 1)))
    return made, tf.data.Dataset.from_tensor_slices((rows, Y)).batch(20)


def unreduced() -> tuple[Any, Any]:
    """Two outputs whose losses are one number per row."""
    keras.utils.set_random_seed(1)
    inputs = keras.Input((4,))
    made = keras.Model(inputs, [keras.layers.Dense(1, name=name)(inputs) for name in ("one", "other")])
    losses = [keras.losses.MeanSquaredError(reduction=None), keras.losses.MeanAbsoluteError(reduction=None)]
    made.compile(keras.optimizers.SGD(0.001), losses, loss_weights=[0.5, 2.0])
    return made, tf.data.Dataset.from_tensor_slices((X, (Y, -Y))).batch(20)


class AddsALoss(keras.layers.Layer):  # type: ignore[misc]
    def call(self, inputs: Any) -> Any:
        self.add_loss(keras.ops.mean(keras.ops.square(inputs)))
        return inputs


def several_on_one() -> tuple[Any, Any]:
    """Several losses on one output, of which Keras minimises one and shows none, beside an added one."""
    keras.utils.set_random_seed(1)
    made = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1), AddsALoss()])
    made.compile(keras.optimizers.SGD(0.001), ["mse", "mae"])
    return made, tf.data.Dataset.from_tensor_slices((X, Y)).batch(20)


@pytest.mark.parametrize("micro", ["auto", 7])
@pytest.mark.parametrize("made_with_data", [sparse, unreduced, several_on_one])
def test_the_loss_of_an_epoch_is_the_number_of_keras(made_with_data: Any, micro: Any) -> None:
    ours, data = made_with_data()
    theirs, _ = made_with_data()
    expected = theirs.fit(data, epochs=2, shuffle=False, verbose=0).history
    found = ab.fit(ours, data, epochs=2, verbose=0, micro_batch_size=micro).history
    assert set(found) == set(expected)
    for name, values in expected.items():
        assert found[name] == pytest.approx(values, rel=1e-5), name


def test_a_history_can_be_kept() -> None:
    history = ab.fit(model(), X, Y, verbose=0)
    assert pickle.loads(pickle.dumps(history)).history == history.history
    assert json.loads(json.dumps(history.params)) == {"verbose": 0, "epochs": 1, "steps": 4}


@pytest.mark.parametrize("compiled", [{}, {"metrics": ["mae"]}])
def test_of_no_rows_nothing_is_told(compiled: Any) -> None:
    with pytest.warns(ab.AnybatchWarning, match="no rows"):
        assert ab.fit(model(**compiled), X[:0], Y[:0], verbose=0).history == {}
    with pytest.warns(ab.AnybatchWarning, match="no rows"):
        assert ab.evaluate(model(**compiled), X[:0], Y[:0], verbose=0) == []


@pytest.mark.parametrize(
    "look",
    [
        lambda made, **limit: ab.evaluate(made, X, Y, verbose=0, **limit),
        lambda made, **limit: ab.predict(made, X, verbose=0, **limit),
    ],
)
def test_who_only_looks_is_refused_above_the_limit_too(look: Any) -> None:
    with pytest.raises(AboveLimit):
        look(model(), memory="1MiB")
    look(model(), memory="16GiB")


def test_who_only_looks_keeps_the_limit() -> None:
    wide = model(16_384)
    rows = np.zeros((8192, 4), "float32")
    expected = wide.evaluate(rows[:64], rows[:64, :1], verbose=0)
    ab.evaluate(wide, rows[:64], rows[:64, :1], batch_size=64, micro_batch_size=8, verbose=0)
    limit = held().counted_bytes + 200 * MB
    with PeakWatch() as watch:
        # what layers put out is 512 MiB
        found = ab.evaluate(wide, rows, rows[:, :1], batch_size=8192, memory=limit, verbose=0)
        assert len(ab.predict(wide, rows, batch_size=8192, memory=limit, verbose=0)) == 8192
    assert watch.peak_bytes <= limit
    assert found == pytest.approx(expected, rel=1e-5)


def test_a_dataset_is_planned_by_its_first_batch() -> None:
    batches = tf.data.Dataset.from_tensor_slices((X, Y)).batch(20)
    found = ab.plan(model(), batches, memory="16GiB")
    assert (found.batch_size, found.parts) == (20, 1)
    assert found.predicted_peak_bytes is not None
    once = ab.plan(model(), ((x, y) for x, y in [(X, Y)]), memory="16GiB")
    assert "read twice" in once.notes[0]


def test_no_memory_is_no_limit_that_could_be_kept() -> None:
    for call in (ab.plan, ab.fit):
        with pytest.raises(ValueError, match="is no size"):
            call(model(), (X, Y) if call is ab.plan else X, memory=0)


@pytest.mark.parametrize("part", [0, -1, 1.5, True])
def test_a_part_of_no_rows_is_refused_in_loops_by_hand(part: Any) -> None:
    weight = keras.Variable(1.0)
    with pytest.raises(ValueError, match="micro_batch_size"):
        ab.gradients(lambda x: x, [weight], X, reduction="mean", micro_batch_size=part)


def test_what_is_no_list_of_variables_and_no_batch_is_refused() -> None:
    with pytest.raises(TypeError, match="variables is a Variable"):
        ab.gradients(lambda x: x, keras.Variable(1.0), X, reduction="mean")
    for batch in (X, ab.from_arrays((X, Y)).batch(4)):
        with pytest.raises(TypeError, match="give \\(x, y\\) of some rows"):
            ab.check_exact(model(), batch)
