import gc
import pickle

import numpy as np
import pytest

import anybatch as ab
from anybatch.memory import PeakWatch, give_back_freed, held, make_peaks_predictable
from anybatch.train import probe
from anybatch.train.plan import plan
from anybatch.train.plan_memory import key_of
from anybatch.train.plan_refusals import AboveLimit, OneSampleTooLarge

MB = 1 << 20
BATCH = 256


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make_peaks_predictable()
    # what tests before have left would be used again, and a batch would seem to need less
    gc.collect()
    give_back_freed()


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

    monkeypatch.setattr(probe.Prober, "_taken", no_probe)
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


def test_a_second_fit_is_planned_like_the_first():
    """The C library keeps what an LSTM lets go of, in pieces; that is not held by anybody."""
    import keras

    rng = np.random.default_rng(0)
    lstm = keras.Sequential([keras.Input((64, 32)), keras.layers.LSTM(64), keras.layers.Dense(1)])
    lstm.compile("adam", "mse")
    x, y = rng.normal(size=(1024, 64, 32)).astype("float32"), rng.normal(size=(1024, 1))
    limit = held().counted_bytes + 120 * MB
    plans = [ab.fit(lstm, x, y, batch_size=1024, memory=limit, verbose=0).plan for _ in range(2)]
    assert plans[0].parts > 1
    assert abs(plans[1].parts - plans[0].parts) <= 1


def test_the_table_says_what_uses_the_bytes(model):
    planned = plan(model, stream(), memory=held().counted_bytes + 500 * MB)
    assert sum(use.n_bytes for use in planned.uses) == planned.predicted_peak_bytes
    rows = ("batch", "predicted peak", "limit", "process before", "weights", "slots", "activations of conv2d")
    for row in (*rows, "parts of", "keras.remat", "mixed precision"):
        assert row in str(planned)


def test_a_plan_says_what_cannot_be_exact_also_when_it_is_remembered(model):
    data = stream()
    limit = held().counted_bytes + 110 * MB
    for planned in (plan(model, data, memory=limit), plan(model, data, memory=limit)):
        assert planned.parts > 1
        assert not planned.exact
        assert [note for note in planned.notes if "Dropout" in note]
        assert sum(use.n_bytes for use in planned.uses) == planned.predicted_peak_bytes


def small(batch_size):
    import keras

    x = np.ones((batch_size, 64), "float32")
    model = keras.Sequential([keras.Input((64,), name="in"), keras.layers.Dense(256, name="one")], name="two")
    model.compile(keras.optimizers.SGD(), keras.losses.MeanSquaredError())
    data = ab.from_arrays((x, np.ones((batch_size, 256), "float32"))).batch(batch_size)
    return plan(model, data, memory="64GiB")


def test_what_was_seen_of_few_samples_is_not_believed_of_many(monkeypatch):
    tried, probed = [], []
    taken = probe.Prober.taken

    def counting(self, rows, *, several):
        tried.append(rows)
        return taken(self, rows, several=several)

    monkeypatch.setattr(probe.Prober, "taken", counting)
    for batch_size in (8, 16, 8, 512, 512):
        before = len(tried)
        small(batch_size)
        probed.append(len(tried) > before)
    assert probed == [True, False, False, True, False]


def test_more_than_the_limit_before_training_is_said_with_both_numbers(model):
    with pytest.raises(AboveLimit) as caught:
        plan(model, stream(), memory=10 * MB)
    assert caught.value.held_bytes > caught.value.limit_bytes == 10 * MB
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("told", [{"micro_batch_size": 8}, {}], ids=["a part that was named", "auto"])
@pytest.mark.parametrize("train", [ab.fit, ab.evaluate])
def test_training_above_the_limit_is_refused_whoever_chose_the_part(model, told, train):
    with pytest.raises(AboveLimit):
        train(model, stream(), memory=10 * MB, verbose=0, **told)


def test_data_that_comes_only_once_is_said_not_to_be_probed(model):
    with pytest.raises(AboveLimit):
        ab.fit(model, once(), memory=10 * MB, verbose=0)
    history = ab.fit(model, once(), memory=held().counted_bytes + 2048 * MB, verbose=0)
    assert history.plan.notes == (
        "nothing was probed: this data has no batch, or none that could be read twice",
    )


def once():
    yield from stream().take(1)


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


def keyed(optimizer):
    import keras

    model = keras.Sequential([keras.Input((4,), name="in"), keras.layers.Dense(3, name="out")], name="same")
    model.compile(optimizer, keras.losses.MeanSquaredError())
    return key_of(model, (np.ones((2, 4)), np.ones((2, 3))))


def test_a_plan_is_known_again_by_what_its_peak_depends_on():
    import keras

    sgd = keras.optimizers.SGD
    assert keyed(sgd(0.1)) == keyed(sgd(0.2))
    assert keyed(sgd(0.1)) != keyed(sgd(0.1, momentum=0.9))


def test_a_step_of_the_models_own_is_planned_whole_and_said():
    import keras

    class Own(keras.Sequential):
        def train_step(self, batch):
            return super().train_step(batch)

    model = Own([keras.Input((4,)), keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    planned = plan(model, (np.ones((8, 4)), np.ones((8, 3))), batch_size=8, memory="64GiB")
    assert (planned.parts, planned.exact) == (1, True)
    assert "Own.train_step cannot be split" in planned.notes[0]


def test_a_finished_run_returns_without_planning(tmp_path, monkeypatch):
    import keras

    def fitted(cache):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / cache))
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
        model.compile("sgd", "mse")
        data = ab.from_arrays((np.ones((16, 4), "float32"), np.ones((16, 3), "float32"))).batch(8)
        return ab.fit(model, data, memory="64GiB", checkpoint=tmp_path / "state", verbose=0)

    first = fitted("one")

    def no_probe(*_, **__):
        raise AssertionError("it was planned")

    monkeypatch.setattr(probe.Prober, "taken", no_probe)
    again = fitted("another")
    assert again.history == first.history
    assert again.plan.batch_size == 8


def test_parts_of_an_lstm_take_no_more_than_batches_of_their_size():
    """A tape that may be asked for several gradients kept three times as much."""
    import keras

    layers = [keras.Input((64, 32)), keras.layers.LSTM(64), keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    model.compile("adam", "mse")
    x = np.random.default_rng(0).normal(size=(2 * BATCH, 64, 32)).astype("float32")
    data = ab.from_arrays((x, np.ones((2 * BATCH, 1)))).batch(2 * BATCH)

    def peak(batches, **options):
        ab.fit(model, batches, verbose=0, **options)
        give_back_freed()
        with PeakWatch() as watch:
            before = held().counted_bytes
            ab.fit(model, batches, verbose=0, **options)
        return watch.peak_bytes - before

    alone = peak(ab.from_arrays((x[:BATCH], np.ones((BATCH, 1)))).batch(BATCH))
    assert peak(data, micro_batch_size=BATCH) < 1.5 * alone
