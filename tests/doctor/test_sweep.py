"""A sweep trains every size from the same weights, over the same samples, and recommends with a reason."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import anybatch as ab
from anybatch.cli import app
from anybatch.doctor.kept import values_of
from anybatch.doctor.noise import measured_noise, noise_of
from anybatch.doctor.sweep import Trial
from anybatch.doctor.sweep.judgement import recommended
from anybatch.doctor.sweep.memory import told
from anybatch.doctor.sweep.trials import _noise_scale as noise_scale_of
from anybatch.doctor.sweep.trials import batched, repeated

BUILD = """
import keras
import numpy as np
import anybatch as ab

def build():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(512, 4)).astype("float32")
    y = x @ np.array([[1.0], [-2.0], [0.5], [3.0]], "float32")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.02), "mse")
    return model, ab.from_arrays((x, y)).shuffle(seed=1)

def held_out():
    x = np.random.default_rng(1).normal(size=(64, 4)).astype("float32")
    return x, x @ np.array([[1.0], [-2.0], [0.5], [3.0]], "float32")

def nothing():
    pass
"""


@pytest.fixture(scope="module")
def built():
    names = {}
    exec(BUILD, names)
    return names["build"]


@pytest.fixture(scope="module")
def found(built):
    return ab.sweep(lambda: built()[0], built()[1], [8, 64, 64], samples=512, validation=built()[1])


def test_every_size_sees_the_same_number_of_samples(found):
    assert [(one.batch_size, one.updates) for one in found.trials] == [(8, 64), (64, 8), (64, 8)]


def test_the_same_size_twice_gives_the_same_loss_as_both_start_from_the_same_weights(found):
    _, one, other = found.trials
    assert one.loss == pytest.approx(other.loss, rel=1e-6)
    assert one.noise_scale == pytest.approx(other.noise_scale, rel=1e-4)


def with_moving_parts():
    """A model with statistics that move and seeds that go on, and noisy data for it."""
    import keras

    layers = [keras.layers.Dense(8), keras.layers.BatchNormalization(), keras.layers.Dropout(0.5)]
    model = keras.Sequential([keras.Input((4,)), *layers, keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.02), "mse")
    rng = np.random.default_rng(2)
    return model, ab.from_arrays((rng.normal(size=(256, 4)), rng.normal(size=(256, 1))))


def test_dropout_draws_the_same_for_the_same_size_twice():
    one, other = ab.sweep(
        lambda: with_moving_parts()[0], with_moving_parts()[1], [32, 32], samples=256
    ).trials
    assert one.loss == pytest.approx(other.loss, rel=1e-6)
    assert one.noise_scale == pytest.approx(other.noise_scale, rel=1e-3)


def test_noise_is_measured_with_the_weights_that_a_size_ended_with(built, monkeypatch):
    updates = []

    def watched(model, batch):
        updates.append(int(model.optimizer.iterations))
        return measured_noise(model, batch)

    # by its module: the package's name is the function's too
    monkeypatch.setattr(sys.modules[noise_scale_of.__module__], "measured_noise", watched)
    few, many = ab.sweep(lambda: built()[0], built()[1], [64, 8], samples=256).trials
    assert updates == [few.updates, many.updates] == [4, 32]
    assert few.noise_scale != many.noise_scale


def test_measuring_noise_moves_neither_statistics_nor_seeds():
    model, data = with_moving_parts()
    before = values_of(model)
    assert noise_scale_of(model, data)
    assert all(np.array_equal(one, other) for one, other in zip(values_of(model), before, strict=True))
    measured_noise(model, next(iter(data.batch(256))))
    # a seed and two statistics would have moved
    assert sum(not np.array_equal(*pair) for pair in zip(values_of(model), before, strict=True)) == 3


def test_more_updates_learn_more_on_an_easy_problem(found):
    assert found.trials[0].loss < found.trials[1].loss
    assert found.recommended == 8
    assert "loss" in found.why


def test_a_sweep_is_told_to_programs_and_as_a_page(found, tmp_path):
    told = json.loads(found.to_json())
    assert told["recommended"] == 8
    assert [one["batch_size"] for one in told["trials"]] == [8, 64, 64]
    found.to_html(tmp_path / "sweep.html")
    assert "Take a batch of 8" in (tmp_path / "sweep.html").read_text()


WIDE = """
import pickle, sys
import keras
import numpy as np
import anybatch as ab

def build():
    model = keras.Sequential([keras.Input((16_384,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model

data = np.ones((800, 16_384), "float32"), np.ones((800, 1), "float32")
found = ab.sweep(build, data, [8], samples=8, data_sizes=[100, 800])
pickle.dump(found, sys.stdout.buffer)
"""


@pytest.fixture(scope="module")
def wide():
    """Samples of 64 KiB, and a model that costs next to nothing, in a process of their own.

    What earlier tests have let go of would be used again, and memory would seem not to grow.
    """
    child = subprocess.run([sys.executable, "-c", WIDE], capture_output=True, check=True, timeout=300)
    return pickle.loads(child.stdout)


def test_memory_grows_with_the_data_for_arrays_and_buffers_and_not_for_a_stream(wide):
    grown = {way: large.peak_bytes - small.peak_bytes for way, (small, large) in told(wide.memory)}
    data_bytes = 700 * 64 * 1024
    assert grown["arrays in memory"] > 0.8 * data_bytes
    assert grown["tf.data, shuffle(10_000)"] > 0.8 * data_bytes
    assert grown["anybatch"] < 0.5 * data_bytes


def test_memory_against_data_size_is_told_in_every_form(wide, tmp_path):
    assert len(json.loads(wide.to_json())["memory"]) == len(wide.memory_rows()) == 6
    wide.to_html(tmp_path / "sweep.html")
    assert "memory against data size" in (tmp_path / "sweep.html").read_text()


def test_a_stream_with_a_batch_of_its_own_is_batched_anew():
    stream = ab.from_arrays({"x": np.arange(100)}).batch(7).map(lambda batch: batch["x"])
    assert [len(one) for one in batched(stream, 50, 20)] == [20, 20, 10]
    assert [len(one["x"]) for one in batched(ab.from_arrays({"x": np.arange(100)}), 50, 20)] == [20, 20, 10]


def test_more_samples_than_the_data_has_are_trained_on_in_several_epochs(built):
    import keras

    data = built()[1]
    keras.utils.set_random_seed(3)
    weights = built()[0].get_weights()

    def build():
        model = built()[0]
        model.set_weights(weights)
        return model

    (trial,) = ab.sweep(build, data, [64], samples=3 * 512).trials
    model = build()
    ab.fit(model, data.batch(64), epochs=3, verbose=0)
    assert trial.updates == int(model.optimizer.iterations) == 24
    assert trial.loss == pytest.approx(ab.evaluate(model, data.batch(64), verbose=0), rel=1e-4)


def epochs_of(values, length):
    return [list(values[at : at + length]) for at in range(0, len(values), length)]


@pytest.mark.parametrize("own_batch", [lambda stream: stream, lambda stream: stream.batch(7).repeat()])
def test_repeated_data_has_exactly_so_many_samples_and_every_epoch_its_own_order(own_batch):
    stream = own_batch(ab.from_arrays(np.arange(30)).shuffle(seed=1))
    batches = list(repeated(stream, 100, 16))
    assert (
        [len(one) for one in batches] == [16] * 6 + [4] == [16] * (len(repeated(stream, 100, 16)) - 1) + [4]
    )
    first, second, third, rest = epochs_of(np.concatenate(batches), 30)
    assert sorted(first) == sorted(second) == sorted(third) == list(range(30))
    assert first != second != third
    assert len(set(rest)) == 10


def test_data_of_unknown_length_is_repeated_too():
    even = ab.from_arrays(np.arange(30)).filter(lambda one: one % 2 == 0)
    assert [len(one) for one in repeated(even, 40, 16)] == [16, 16, 8]


def test_a_choice_among_batches_is_refused_as_a_sweep_changes_them():
    with pytest.raises(ValueError, match=r"`take\(3\)` behind batch .* put it before batch"):
        repeated(ab.from_arrays(np.arange(30)).batch(5).take(3), 20, 10)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"batch_sizes": 10}, "batch_sizes is 10; give a list of sizes"),
        ({"batch_sizes": "10,20"}, "batch_sizes is '10,20'; give a list"),
        ({"batch_sizes": []}, "batch_sizes names no size"),
        ({"batch_sizes": [8, 0]}, "a size of batch_sizes is 0; it is a whole number from 1 on"),
        ({"batch_sizes": [2.5]}, "a size of batch_sizes is 2.5"),
        ({"samples": 0}, "samples is 0"),
        ({"samples": "many"}, "samples is 'many'"),
        ({"data_sizes": 5}, "data_sizes is 5; give a list of sizes"),
        ({"data": np.ones((4, 2))}, "data is of type ndarray; give a stream of"),
        ({"data": {"x": np.ones(4)}}, "data is of type dict; give a stream of"),
        ({"data": ab.from_arrays({"x": np.ones(4)})}, r"an element of data is a dict; \(x, y\) is needed"),
        ({"data": (np.ones(4),)}, r"an element of data is a tuple of 1; \(x, y\) is needed"),
        ({"data": (np.ones(0), np.ones(0))}, "data has 0 records"),
        ({"validation": np.ones(4)}, "validation is of type ndarray"),
        ({"build_model": None}, "build_model is of type NoneType; give the function"),
    ],
)
def test_what_makes_no_sweep_is_refused_by_name(wrong, told, built):
    given = {"build_model": lambda: built()[0], "data": built()[1], "batch_sizes": [8], "samples": 16}
    with pytest.raises((TypeError, ValueError), match=told):
        ab.sweep(**{**given, **wrong})


def test_a_model_in_place_of_the_function_that_makes_one_is_refused(built):
    model, data = built()
    with pytest.raises(TypeError, match="build_model is of type Sequential; give the function that returns"):
        ab.sweep(model, data, [8], samples=16)


def trial(size, speed, loss):
    return Trial(size, 10, speed, 0, loss, None, None)


def test_the_fastest_of_those_that_learnt_alike_is_recommended():
    chosen, why = recommended([trial(8, 10.0, 0.500), trial(32, 30.0, 0.505), trial(512, 99.0, 0.9)])
    assert chosen.batch_size == 32
    assert "0.5 at 8" in why


def test_a_loss_that_is_no_number_is_never_recommended():
    assert recommended([trial(8, 10.0, 0.5), trial(512, 99.0, float("nan"))])[0].batch_size == 8


@pytest.mark.parametrize("sizes", [[16] * 40, [5, 11, 16, 32] * 20])
def test_the_noise_scale_is_that_of_the_draws(sizes):
    rng = np.random.default_rng(0)
    signal = np.full(2000, 0.1)
    parts = [signal + rng.normal(scale=2.0, size=(size, 2000)).mean(axis=0) for size in sizes]
    assert noise_of(parts, sizes).scale == pytest.approx(2.0**2 / 0.1**2, rel=0.15)


def test_one_part_tells_no_noise():
    assert noise_of([np.ones(3)], [4]) is None


def test_the_command_prints_the_table_and_the_reason(tmp_path):
    (tmp_path / "train.py").write_text(BUILD)
    arguments = ["sweep", f"{tmp_path}/train.py:build", "--batch-sizes", "16,128", "--samples", "256"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "Take a batch of 16" in result.stdout


def swept(folder, *more):
    (folder / "train.py").write_text(BUILD)
    arguments = ["sweep", f"{folder}/train.py:build", "--batch-sizes", "16", "--samples", "64", *more]
    return CliRunner().invoke(app, arguments)


def test_the_command_tells_the_loss_on_validation_data(tmp_path):
    result = swept(tmp_path, "--validation", f"{tmp_path}/train.py:held_out", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert 0 < told["trials"][0]["validation_loss"] != told["trials"][0]["loss"]
    assert told["why"].startswith("validation loss")


def test_the_command_refuses_validation_data_that_is_none(tmp_path):
    result = swept(tmp_path, "--validation", f"{tmp_path}/train.py:nothing")
    assert result.exit_code == 2
    assert "train.py:nothing` returned None; return a stream of (x, y)" in " ".join(result.stderr.split())


def test_the_command_refuses_what_is_no_list_of_sizes(tmp_path):
    (tmp_path / "train.py").write_text(BUILD)
    result = CliRunner().invoke(app, ["sweep", f"{tmp_path}/train.py:build", "--batch-sizes", "many"])
    assert result.exit_code == 2
    assert "32,128,512" in result.stderr
