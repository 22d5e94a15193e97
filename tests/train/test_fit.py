"""`fit` behaves as Keras' own, counted in whole batches, whatever the data is."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import anybatch as ab
from anybatch.train.refusals import CannotSplit, OwnAccumulation

ROWS, BATCH = 50, 16
X = np.random.default_rng(1).normal(size=(ROWS, 5)).astype("float32")
Y = (X[:, :1] > 0).astype("float32")


def model(**options: Any) -> Any:
    keras.utils.set_random_seed(4)
    made = keras.Sequential([keras.Input((5,)), layers.Dense(6, activation="tanh"), layers.Dense(1)])
    made.compile("adam", keras.losses.BinaryCrossentropy(from_logits=True), metrics=["mae"], **options)
    return made


class Batches(keras.utils.PyDataset):  # type: ignore[misc]
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        rows = slice(index * BATCH, (index + 1) * BATCH)
        return X[rows], Y[rows]


def generated() -> Iterator[Any]:
    while True:
        yield from (Batches()[index] for index in range(4))


def dataset() -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(BATCH)


def stream() -> Any:
    return ab.from_arrays({"x": X, "y": Y}).batch(BATCH).as_supervised("x", "y")


SOURCES: dict[str, Callable[[], dict[str, Any]]] = {
    "arrays": lambda: {"x": X, "y": Y, "batch_size": BATCH},
    "tensors": lambda: {"x": tf.constant(X), "y": tf.constant(Y), "batch_size": BATCH},
    "a dataset": lambda: {"x": dataset()},
    "a PyDataset": lambda: {"x": Batches(workers=1)},
    "a generator": lambda: {"x": generated(), "steps_per_epoch": 4},
    "a stream": lambda: {"x": stream()},
}


@pytest.fixture(scope="module")
def expected() -> tuple[Any, Any]:
    made = model()
    history = made.fit(X, Y, batch_size=BATCH, epochs=2, shuffle=False, verbose=0, validation_data=(X, Y))
    return made.get_weights(), history.history


@pytest.mark.parametrize("micro", ["auto", 5])
@pytest.mark.parametrize("name", SOURCES)
def test_every_kind_of_data_gives_what_keras_gives(name: str, micro: Any, expected: tuple[Any, Any]) -> None:
    made = model()
    given = SOURCES[name]()
    history = ab.fit(
        made, **given, epochs=2, shuffle=False, verbose=0, validation_data=(X, Y), micro_batch_size=micro
    )
    for one, other in zip(made.get_weights(), expected[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    assert set(history.history) == set(expected[1])
    for key, values in expected[1].items():
        assert history.history[key] == pytest.approx(values, rel=1e-4), key
    assert history.plan.micro_batch_size in {None, BATCH, 5}


class Told(keras.callbacks.Callback):  # type: ignore[misc]
    """Writes down what it is called with."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Any] = []

    def on_train_begin(self, logs: Any = None) -> None:
        self.calls.append(("train", self.params["epochs"], self.params["steps"]))

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.calls.append(("epoch", epoch))

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.calls.append(("begin", batch))

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.calls.append(("end", batch, sorted(logs)))

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self.calls.append(("tested", batch, sorted(logs)))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.calls.append(("over", epoch, sorted(logs)))

    def on_train_end(self, logs: Any = None) -> None:
        self.calls.append(("finished", sorted(logs)))


@pytest.mark.parametrize("steps_per_execution", [1, 3])
def test_callbacks_are_called_as_keras_calls_them(steps_per_execution: int) -> None:
    ours, theirs = Told(), Told()
    options: dict[str, Any] = {
        "batch_size": BATCH,
        "epochs": 3,
        "initial_epoch": 1,
        "verbose": 0,
        "validation_split": 0.2,
        "validation_freq": 2,
    }
    compiled = {"steps_per_execution": steps_per_execution}
    model(**compiled).fit(X, Y, callbacks=[theirs], **options)
    ab.fit(model(**compiled), X, Y, callbacks=[ours], micro_batch_size=7, **options)
    assert ours.calls == theirs.calls


def test_steps_per_epoch_go_on_where_the_last_epoch_stopped() -> None:
    made, other = model(), model()
    repeated = dataset().repeat()
    made.fit(repeated, steps_per_epoch=3, epochs=3, verbose=0)
    ab.fit(other, repeated, steps_per_epoch=3, epochs=3, verbose=0, micro_batch_size=9)
    for one, two in zip(other.get_weights(), made.get_weights(), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)


def test_a_stream_is_asked_for_parts_only() -> None:
    seen: list[int] = []

    def watched(columns: Any) -> Any:
        seen.append(len(columns["x"]))
        return columns

    watching = (
        ab.from_arrays({"x": X, "y": Y}).batch(BATCH).map(watched, batched=True).as_supervised("x", "y")
    )
    ab.fit(model(), watching, verbose=0, micro_batch_size=5)
    assert sum(seen) == ROWS
    assert max(seen) <= 5


def test_arrays_are_shuffled_by_the_seed_of_keras() -> None:
    found = []
    for seed in (1, 1, 2):
        made = model()
        keras.utils.set_random_seed(seed)
        ab.fit(made, X, Y, verbose=0)
        found.append(made.get_weights()[0])
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


def normalised() -> Any:
    keras.utils.set_random_seed(4)
    made = keras.Sequential([keras.Input((5,)), layers.BatchNormalization(momentum=0.9), layers.Dense(1)])
    made.compile(keras.optimizers.SGD(0.0), "mse")
    return made


def test_batch_normalisation_commits_the_statistics_of_the_whole_batch() -> None:
    whole, split = normalised(), normalised()
    ab.fit(whole, X, Y, batch_size=BATCH, shuffle=False, verbose=0)
    history = ab.fit(split, X, Y, batch_size=BATCH, shuffle=False, verbose=0, micro_batch_size=5)
    for one, other in zip(split.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    assert not history.plan.exact
    assert "batch_normalization" in str(history.plan)


def test_what_is_not_exact_in_parts_is_in_the_log_before_the_first_update(caplog: Any) -> None:
    seen = []
    watching = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(len(caplog.records))
    )
    for micro in (BATCH, 5):
        options = {"batch_size": BATCH, "verbose": 0, "micro_batch_size": micro, "callbacks": [watching]}
        ab.fit(normalised(), X, Y, **options)
    assert (seen[0], seen[-1]) == (0, 1)
    assert "not exactly the update of the whole batch: BatchNormalization" in caplog.text


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_found_when_batches_are_split_is_told_whatever_the_data_is(name: str) -> None:
    history = ab.fit(normalised(), **SOURCES[name](), verbose=0, micro_batch_size=5)
    assert not history.plan.exact
    assert "batch_normalization" in str(history.plan)


def test_a_batch_that_is_larger_than_the_planned_one_is_told_to_be_split() -> None:
    batches = [(X[:4], Y[:4]), (X[4:], Y[4:])]
    history = ab.fit(normalised(), (batch for batch in batches), verbose=0, micro_batch_size=4)
    assert not history.plan.exact


def test_of_batches_that_stay_whole_nothing_is_told() -> None:
    made = normalised()
    ab.fit(made, X, Y, batch_size=BATCH, verbose=0, micro_batch_size=5)
    history = ab.fit(made, X, Y, batch_size=5, verbose=0, validation_data=(X, Y), validation_batch_size=BATCH)
    assert history.plan.exact
    assert history.plan.notes == ()


class Contrasting(keras.Model):  # type: ignore[misc]
    """Compares every sample with every other one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = layers.Dense(3)

    def call(self, inputs: Any) -> Any:
        return self.first(inputs)

    def compute_loss(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None, training: Any = True
    ) -> Any:
        return keras.ops.mean(
            keras.ops.logsumexp(keras.ops.matmul(y_pred, keras.ops.transpose(y_pred)), axis=1)
        )


def test_a_loss_that_compares_samples_is_found() -> None:
    made = Contrasting()
    made.compile("sgd")
    history = ab.fit(made, X, Y, batch_size=BATCH, verbose=0, micro_batch_size=8)
    assert not history.plan.exact
    assert "compute_loss" in str(history.plan)


class Stepping(keras.Model):  # type: ignore[misc]
    """Has a step of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first = layers.Dense(1)

    def call(self, inputs: Any) -> Any:
        return self.first(inputs)

    def train_step(self, data: Any) -> Any:
        return {**super().train_step(data), "own": 1.0}


def test_a_step_of_the_models_own_runs_whole_and_is_not_split() -> None:
    made = Stepping()
    made.compile("sgd", "mse")
    assert ab.fit(made, X, Y, batch_size=BATCH, verbose=0).history["own"] == [1.0]
    with pytest.raises(CannotSplit, match=r"Stepping\.train_step"):
        ab.fit(made, X, Y, batch_size=BATCH, verbose=0, micro_batch_size=5)


def test_an_optimizer_that_accumulates_is_refused_with_the_fix() -> None:
    made = model()
    made.compile(keras.optimizers.SGD(gradient_accumulation_steps=4), "mse")
    with pytest.raises(OwnAccumulation, match="batch_size=64"):
        ab.fit(made, X, Y, batch_size=16)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"x": dataset(), "batch_size": 4}, "batch_size=4"),
        ({"x": stream(), "batch_size": 4}, "batch_size=4"),
        ({"x": stream(), "y": Y}, "as_supervised"),
        ({"x": dataset(), "y": Y}, "should not be passed"),
        ({"x": X, "y": Y[:3]}, "cardinality"),
        ({"x": X, "y": Y, "micro_batch_size": 0}, "micro_batch_size=0"),
    ],
)
def test_what_keras_refuses_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ab.fit(model(), **given)


def test_evaluate_and_predict_in_parts_give_what_keras_gives() -> None:
    made = model()
    assert ab.evaluate(made, X, Y, verbose=0, micro_batch_size=7) == pytest.approx(
        made.evaluate(X, Y, verbose=0)
    )
    np.testing.assert_allclose(
        ab.predict(made, X, verbose=0, micro_batch_size=7), made.predict(X, verbose=0), rtol=1e-4, atol=1e-6
    )


def test_mixed_precision_scales_once_per_update() -> None:
    found = []
    for micro in ("auto", 5):
        keras.utils.set_random_seed(4)
        keras.config.set_dtype_policy("mixed_float16")
        try:
            made = keras.Sequential([keras.Input((5,)), layers.Dense(6), layers.Dense(1, dtype="float32")])
            made.compile("adam", "mse")
        finally:
            keras.config.set_dtype_policy("float32")
        ab.fit(made, X, Y, batch_size=BATCH, epochs=5, shuffle=False, verbose=0, micro_batch_size=micro)
        scaler = made.optimizer
        found.append(
            (made.get_weights(), int(scaler.iterations.numpy()), float(scaler.dynamic_scale.numpy()))
        )
    (whole, updates, scale), (split, split_updates, split_scale) = found
    assert (split_updates, split_scale) == (updates, scale)
    assert updates > 10, "some updates are skipped until the scale is low enough, and most are made"
    for one, other in zip(split, whole, strict=True):
        # half precision: the activations are rounded to three digits, split or not
        np.testing.assert_allclose(one, other, atol=2e-3)


@pytest.mark.parametrize("way", [{"run_eagerly": True}, {"jit_compile": True}], ids=["eagerly", "compiled"])
def test_training_in_another_way_in_parts_is_the_same(way: dict[str, bool]) -> None:
    traced, another = model(jit_compile=False), model(**way)
    for made in (traced, another):
        ab.fit(made, X, Y, batch_size=BATCH, shuffle=False, verbose=0, micro_batch_size=7)
    for one, other in zip(another.get_weights(), traced.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


class Branching(keras.Model):  # type: ignore[misc]
    """Runs a layer only if some row needs it: untraced, other parts have no gradient for it."""

    def __init__(self) -> None:
        super().__init__()
        self.rare = layers.Dense(1)
        self.first = layers.Dense(1)

    def call(self, inputs: Any) -> Any:
        needed = inputs[:, :1] > 1.0
        found = self.first(inputs)
        if tf.executing_eagerly() and not tf.reduce_any(needed):
            return found
        return found + self.rare(inputs) * tf.cast(needed, "float32")


@pytest.mark.parametrize("order", [1, -1], ids=["needed last", "needed first"])
def test_a_part_without_some_gradient_adds_nothing_to_it(order: int) -> None:
    rows = np.argsort(X[:BATCH, 0])[::order]
    found = []
    for micro in (BATCH, 5):
        keras.utils.set_random_seed(4)
        made = Branching()
        made.compile(keras.optimizers.SGD(0.1), "mse", run_eagerly=True)
        ab.fit(made, X[rows], Y[rows], batch_size=BATCH, shuffle=False, verbose=0, micro_batch_size=micro)
        found.append(made.get_weights())
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_frozen_layer_stays_as_it_is_in_the_next_fit() -> None:
    made = model()
    ab.fit(made, X, Y, batch_size=BATCH, verbose=0, micro_batch_size=7)
    made.layers[0].trainable = False
    made.compile("adam", "mse")
    before = made.layers[0].get_weights()[0]
    ab.fit(made, X, Y, batch_size=BATCH, verbose=0, micro_batch_size=7)
    assert np.array_equal(made.layers[0].get_weights()[0], before)


@pytest.mark.parametrize("micro", ["auto", 7])
def test_a_layer_that_is_frozen_without_compiling_stays_as_it_is_and_that_is_told(micro: Any) -> None:
    made = model()
    ab.fit(made, X, Y, batch_size=BATCH, verbose=0, micro_batch_size=micro)
    made.layers[0].trainable = False
    before = made.layers[0].get_weights()[0]
    ab.evaluate(made, X, Y, verbose=0)
    with pytest.warns(ab.AnybatchWarning, match="model.fit would train as before; compile the model again"):
        ab.fit(made, X, Y, batch_size=BATCH, verbose=0, micro_batch_size=micro)
    assert np.array_equal(made.layers[0].get_weights()[0], before)


def test_a_stream_with_class_weights_is_weighed_as_arrays_are() -> None:
    found = []
    for given in ({"x": stream()}, {"x": X, "y": Y, "batch_size": BATCH, "shuffle": False}):
        made = model()
        ab.fit(made, **given, class_weight={0: 0.1, 1: 5.0}, verbose=0, micro_batch_size=6)
        found.append(made.get_weights())
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_a_model_that_was_never_compiled_predicts() -> None:
    made = keras.Sequential([keras.layers.Dense(2)])
    rows = np.ones((5, 3), "float32")
    predicted = ab.predict(made, ab.from_arrays(rows).batch(2), verbose=0)
    np.testing.assert_allclose(predicted, made.predict(rows, verbose=0), rtol=1e-6)


@pytest.mark.parametrize("use", [ab.fit, ab.evaluate, ab.predict])
@pytest.mark.parametrize(
    ("given", "said"),
    [(None, "there is no data: x is None"), ("train/*.tfrecord", "ab.read(path, features)")],
)
def test_data_that_is_no_data_is_one_clear_sentence(use: Any, given: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        use(model(), given)


@pytest.mark.parametrize("use", [ab.fit, ab.evaluate, ab.predict])
def test_columns_that_nobody_has_told_apart_are_noted(use: Any) -> None:
    with pytest.raises(ValueError) as failure:  # noqa: PT011 - what Keras says is its own
        use(model(), ab.from_arrays({"x": X, "y": Y}).batch(BATCH), verbose=0)
    assert "the stream yields the columns x, y by name" in failure.value.__notes__[0]
    assert ".as_supervised('x', 'y')" in failure.value.__notes__[0]


def test_an_error_of_ours_needs_no_note() -> None:
    with pytest.raises(ValueError, match="micro_batch_size=0") as failure:
        ab.fit(model(), ab.from_arrays({"x": X, "y": Y}).batch(BATCH), micro_batch_size=0)
    assert not getattr(failure.value, "__notes__", [])
