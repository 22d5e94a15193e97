import pickle

import numpy as np
import pytest

import anybatch as ab
from anybatch.memory import PeakWatch, held, make_peaks_predictable
from anybatch.train import probe
from anybatch.train.plan import AboveLimit, OneSampleTooLarge, plan

MB = 1 << 20
BATCH = 256


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make_peaks_predictable()


@pytest.fixture
def model():
    import keras

    keras.utils.set_random_seed(1)
    layers = keras.layers
    made = keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.Dropout(0.2),
            layers.Conv2D(32, 3, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10),
        ]
    )
    made.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return made


def stream():
    random = np.random.default_rng(0)
    x = random.normal(size=(2 * BATCH, 32, 32, 3)).astype("float32")
    return ab.from_arrays((x, random.integers(0, 10, 2 * BATCH))).shuffle(seed=1).batch(BATCH)


def everything(model):
    return [np.array(variable).tobytes() for variable in (*model.variables, *model.metrics_variables)]


def test_planning_changes_nothing_and_is_remembered(model, monkeypatch):
    data, before = stream(), [weight.tobytes() for weight in model.get_weights()]
    chance = np.random.get_state()[1].tobytes()  # noqa: NPY002 - it is the global one
    first = plan(model, data, memory=held().counted_bytes + 500 * MB)
    assert [weight.tobytes() for weight in model.get_weights()] == before
    assert int(model.optimizer.iterations) == 0
    assert np.random.get_state()[1].tobytes() == chance  # noqa: NPY002

    def no_probe(*_, **__):
        raise AssertionError("it was probed again")

    monkeypatch.setattr(probe.Prober, "rise_bytes", no_probe)
    again = plan(model, data, memory=first.limit_bytes)
    assert (again.parts, again.micro_batch_size) == (first.parts, first.micro_batch_size)


def test_a_planned_fit_keeps_to_its_limit_and_the_peak_was_predicted(model):
    data = stream()
    limit = held().counted_bytes + 110 * MB
    planned = plan(model, data, memory=limit)
    assert planned.parts > 1
    with PeakWatch() as watch:
        history = ab.fit(model, data, micro_batch_size=planned.micro_batch_size, verbose=0)
    assert history.events == []
    assert watch.peak_bytes <= limit
    assert abs(planned.predicted_peak_bytes - watch.peak_bytes) <= 0.1 * watch.peak_bytes


def test_the_table_says_what_uses_the_bytes(model):
    told = str(plan(model, stream(), memory=held().counted_bytes + 500 * MB))
    for row in ("batch", "predicted peak", "limit", "held already", "samples"):
        assert row in told


def test_more_than_the_limit_before_training_is_said_with_both_numbers(model):
    with pytest.raises(AboveLimit) as caught:
        plan(model, stream(), memory=10 * MB)
    assert caught.value.held_bytes > caught.value.limit_bytes == 10 * MB
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_sample_that_cannot_fit_is_said_with_what_it_needs():
    import keras

    # so large that no memory which other tests have let go of is enough
    long = keras.Sequential(
        [keras.Input((1_000_000, 1)), keras.layers.Conv1D(24, 1), keras.layers.GlobalMaxPooling1D()]
    )
    long.compile("sgd", "mse")
    data = ab.from_arrays((np.zeros((4, 1_000_000, 1), "float32"), np.zeros((4, 24), "float32"))).batch(2)
    limit_bytes = held().counted_bytes + 64 * MB
    with pytest.raises(OneSampleTooLarge) as caught:
        plan(long, data, memory=limit_bytes)
    assert caught.value.needed_bytes > limit_bytes


def test_a_dataset_that_comes_in_batches_is_planned_by_its_first_one():
    import keras
    import tensorflow as tf

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    dataset = tf.data.Dataset.from_tensor_slices((np.ones((40, 4)), np.ones((40, 3)))).batch(16)
    plan = ab.fit(model, dataset, memory="64GiB", verbose=0).plan
    assert (plan.batch_size, plan.parts) == (16, 1)
    assert plan.predicted_peak_bytes is not None
