import json
import os
import random
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import anybatch as ab
from anybatch.errors import AnybatchWarning
from anybatch.train.checkpoint import ChangedSince
from tests.checkpoint.interruptions import Interrupted, interrupting, weights_after

ROOT = Path(__file__).parents[2]
STARTING_SECONDS = 5


def program(*arguments):
    return [sys.executable, "-m", "tests.checkpoint.trained", *map(str, arguments)]


def run(out, kill_at, epochs, kind, writing):
    done = subprocess.run(
        program(out, kill_at, epochs, kind, writing),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == (0 if kill_at < 0 else -9), done.stderr


def story(out):
    """Return weights and slots, history, and of every update its number, its place and its samples."""
    with np.load(out / "weights.npz") as loaded:
        weights = [loaded[name].tobytes() for name in loaded.files]
    diary = [tuple(map(int, line.split())) for line in (out / "diary").read_text().splitlines()]
    return weights, json.loads((out / "history.json").read_text()), diary


@pytest.mark.long
@pytest.mark.parametrize("kind", ["stream", "dataset", "records"])
def test_a_run_killed_between_updates_ends_as_one_that_was_not(tmp_path, saving_always, kind):
    from tests.checkpoint import trained

    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    for folder in (undisturbed, killed):
        folder.mkdir()
    run(killed, 13, trained.EPOCHS, kind, trained.AT_ONCE)
    for folder in (killed, undisturbed):
        trained.main(folder, -1, kind=kind)
    # equal weights and history; no update twice, none missing, each at its place in its epoch
    assert story(killed) == story(undisturbed)
    assert_every_sample_once_per_epoch(story(killed)[2])


def assert_every_sample_once_per_epoch(diary):
    from tests.checkpoint.trained import BATCH, SAMPLES

    per_epoch = SAMPLES // BATCH
    for first in range(0, len(diary), per_epoch):
        seen = [sample for _, _, *samples in diary[first : first + per_epoch] for sample in samples]
        assert sorted(seen) == list(range(SAMPLES))


@pytest.mark.soak
def test_200_kills_at_random_moments_change_nothing(tmp_path):
    killed_at_random(tmp_path, int(os.environ.get("ANYBATCH_KILLS", "200")), "records", left_alone=run)


@pytest.mark.long
def test_kills_while_states_are_written_behind_training_change_nothing(tmp_path):
    from tests.checkpoint import trained

    def in_this_process(out, kill_at, epochs, kind, writing):
        trained.main(out, kill_at, epochs=epochs, kind=kind, writing=writing)

    killed_at_random(tmp_path, 2, "records", left_alone=in_this_process)


def killed_at_random(folder, kills, kind, left_alone):
    """Kill a training again and again, wherever it is, and compare it with one that was left alone.

    States are written while it goes on, as always, and as often as can be.
    """
    # about half an epoch passes between two kills: far more than that, or it would end too soon
    settings = (-1, 10 + 2 * kills, kind, "behind")
    for name in ("undisturbed", "killed"):
        (folder / name).mkdir()
    left_alone(folder / "undisturbed", *settings)
    chance = random.Random(1)
    for number in range(kills):
        with subprocess.Popen(
            program(folder / "killed", *settings), cwd=ROOT, stderr=subprocess.DEVNULL
        ) as one:
            if number % 8 == 7:
                # while it starts: imports, the state that is found, the first trace
                time.sleep(chance.uniform(0, STARTING_SECONDS))
            else:
                wait_for_another_state(folder / "killed" / "state", one)
                time.sleep(chance.expovariate(1 / 0.05))
            one.kill()
        assert one.returncode == -9, "it finished before it could be killed"
    left_alone(folder / "killed", *settings)
    weights, history, diary = story(folder / "undisturbed")
    again, seen, kept = story(folder / "killed")
    assert (again, seen) == (weights, history)
    # an update may be made again after a kill, but the last time it is written down counts, and all are there
    assert sorted(set(kept)) == sorted(diary)
    assert_every_sample_once_per_epoch(diary)


def wait_for_another_state(folder, training):
    def newest():
        return max((file.name for file in folder.glob("state-*.json")), default="")

    before = newest()
    while newest() == before and training.poll() is None:
        time.sleep(0.01)


def fits(tmp_path, interrupted_at, **options):
    """Return weights, history and epochs of a fit, interrupted after so many updates and continued."""
    from tests.checkpoint.trained import model

    if interrupted_at is not None:
        with pytest.raises(Interrupted):
            ab.fit(
                model(), **made(options), checkpoint=tmp_path / "a", callbacks=[interrupting(interrupted_at)]
            )
    trained = model()
    folder = None if interrupted_at is None else tmp_path / "a"
    history = ab.fit(trained, **made(options), checkpoint=folder)
    return weights_after(trained), history.history, history.epoch


def made(options):
    return {name: value() if callable(value) else value for name, value in options.items()} | {"verbose": 0}


def as_generator():
    from tests.checkpoint.trained import arrays

    x, y = arrays()
    while True:
        for start in range(0, 320, 32):
            yield x[start : start + 32], y[start : start + 32]


def inputs():
    from tests.checkpoint.trained import arrays, dataset, stream

    x, y = arrays()
    return {
        "a dataset": {"x": dataset, "epochs": 3},
        "a dataset by steps": {"x": lambda: dataset().repeat(), "steps_per_epoch": 7, "epochs": 3},
        "a stream": {"x": stream, "epochs": 2},
        "a stream by steps": {"x": lambda: stream().repeat(), "steps_per_epoch": 7, "epochs": 3},
        "arrays that are shuffled": {"x": x, "y": y, "batch_size": 32, "epochs": 2},
        "arrays in their order": {"x": x, "y": y, "batch_size": 32, "epochs": 2, "shuffle": False},
    }


@cache
def undisturbed(kind):
    return fits(None, None, **inputs()[kind])


@pytest.mark.parametrize("interrupted_at", [3, 13])
@pytest.mark.parametrize("kind", inputs())
def test_training_goes_on_exactly_where_it_stopped(tmp_path, saving_always, kind, interrupted_at):
    assert fits(tmp_path, interrupted_at, **inputs()[kind]) == undisturbed(kind)


def test_numbers_that_a_layer_draws_without_a_seed_go_on_too(tmp_path, saving_always):
    import keras

    from tests.checkpoint.trained import arrays

    class Noise(keras.layers.Layer):
        def call(self, x, training=False):
            return x + keras.random.normal((8,)) if training else x

    def noisy():
        keras.utils.set_random_seed(3)
        made = keras.Sequential([keras.Input((8,)), Noise(), keras.layers.Dense(1)])
        made.compile("sgd", "mse")
        return made

    def trained(folder, *callbacks):
        made, (x, y) = noisy(), arrays()
        ab.fit(made, x, y, batch_size=32, shuffle=False, verbose=0, checkpoint=folder, callbacks=[*callbacks])
        return weights_after(made)

    with pytest.raises(Interrupted):
        trained(tmp_path, interrupting(3))
    assert trained(tmp_path) == trained(None)


def test_a_dataset_that_stopped_between_two_epochs_is_shuffled_as_it_would_have_been(tmp_path, saving_always):
    assert fits(tmp_path, 10, **inputs()["a dataset"]) == undisturbed("a dataset")


def test_data_that_cannot_say_where_it_stands_is_read_again_and_that_is_said(tmp_path, saving_always):
    options = {"x": as_generator, "steps_per_epoch": 10, "epochs": 2, "shuffle": False}
    with pytest.warns(AnybatchWarning, match="cannot say where it stands"):
        continued = fits(tmp_path, 13, **options)
    assert continued == fits(tmp_path, None, **options)


def test_a_dataset_with_functions_of_python_is_one_that_is_read_again(tmp_path, saving_always):
    import tensorflow as tf

    from tests.checkpoint.trained import dataset

    def through_python():
        return dataset(buffer=None).map(
            lambda x, y: (tf.ensure_shape(tf.numpy_function(abs, [x], "float32"), x.shape), y)
        )

    with pytest.warns(AnybatchWarning, match="cannot say where it stands"):
        continued = fits(tmp_path, 13, x=through_python, epochs=2)
    assert continued == fits(tmp_path, None, x=through_python, epochs=2)


def test_the_place_of_another_dataset_is_refused(tmp_path, saving_always):
    from tests.checkpoint.trained import dataset, model

    with pytest.raises(Interrupted):
        ab.fit(model(), dataset(), verbose=0, checkpoint=tmp_path, callbacks=[interrupting(3)])
    with pytest.raises(ChangedSince, match=r"^the data changed"):
        ab.fit(model(), dataset().take(10).skip(0), verbose=0, checkpoint=tmp_path)
    assert [file for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_a_finished_run_is_returned_at_once(tmp_path):
    from tests.checkpoint.trained import model, stream

    first = model()
    history = ab.fit(first, stream(), epochs=2, verbose=0, checkpoint=tmp_path)
    second = model()
    again = ab.fit(second, stream(), epochs=2, verbose=0, checkpoint=tmp_path, callbacks=[interrupting(0)])
    assert weights_after(second) == weights_after(first)
    assert again.history == history.history


def test_more_epochs_continue_a_finished_run(tmp_path):
    from tests.checkpoint.trained import model, stream

    ab.fit(model(), stream(), epochs=1, verbose=0, checkpoint=tmp_path)
    continued = model()
    history = ab.fit(continued, stream(), epochs=3, verbose=0, checkpoint=tmp_path)
    whole = model()
    assert history.history == ab.fit(whole, stream(), epochs=3, verbose=0).history
    assert weights_after(continued) == weights_after(whole)


def test_what_changed_is_refused_by_name(tmp_path):
    import keras

    from tests.checkpoint.trained import model, stream

    ab.fit(model(), stream(), verbose=0, checkpoint=tmp_path)
    wider = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
    wider.compile("sgd", "mse")
    for what, changed in {
        "the model": (wider, stream()),
        "the data": (model(), stream().take(5)),
    }.items():
        with pytest.raises(ChangedSince, match=f"^{what} changed"):
            ab.fit(*changed, verbose=0, checkpoint=tmp_path)
    ab.fit(wider, stream(), verbose=0, checkpoint=tmp_path, resume=False)


def test_early_stopping_remembers_across_a_restart(tmp_path, saving_always):
    import keras

    from tests.checkpoint.trained import model, stream

    def stopping():
        return keras.callbacks.EarlyStopping("loss", patience=2, min_delta=100.0, restore_best_weights=True)

    def trained(callbacks, checkpoint):
        one = model()
        history = ab.fit(one, stream(), epochs=5, verbose=0, callbacks=callbacks, checkpoint=checkpoint)
        return weights_after(one), history.epoch

    with pytest.raises(Interrupted):
        trained([stopping(), interrupting(15)], tmp_path)
    assert trained([stopping()], tmp_path) == trained([stopping()], None)


def test_a_continued_run_that_is_interrupted_leaves_the_model_ready_for_another(tmp_path, saving_always):
    from tests.checkpoint.trained import model, stream

    ab.fit(model(), stream(), epochs=4, verbose=0, checkpoint=tmp_path)
    continued = model()
    with pytest.raises(Interrupted):
        ab.fit(continued, stream(), epochs=6, verbose=0, checkpoint=tmp_path, callbacks=[interrupting(0)])
    assert ab.fit(continued, stream(), epochs=3, verbose=0).epoch == [0, 1, 2]


def test_a_model_of_the_same_weights_is_another_one_if_it_computes_something_else(tmp_path):
    import keras

    from tests.checkpoint.trained import arrays

    def model(activation, loss):
        made = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4, activation), keras.layers.Dense(1)])
        made.compile("sgd", loss)
        return made

    x, y = arrays()
    options = {"verbose": 0, "checkpoint": tmp_path}
    ab.fit(model("tanh", "mse"), x, y, **options)
    assert ab.fit(model("tanh", "mse"), x, y, **options).epoch == [0]
    for changed in (model("relu", "mse"), model("tanh", "mae")):
        with pytest.raises(ChangedSince, match=r"^the model changed"):
            ab.fit(changed, x, y, **options)


def test_a_file_is_no_folder_for_states(tmp_path):
    from tests.checkpoint.trained import model, stream

    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="names a folder"):
        ab.fit(model(), stream(), verbose=0, checkpoint=tmp_path / "file")


@pytest.mark.parametrize("changed", ["another file", "another function"])
def test_other_data_is_refused_even_if_there_is_as_much_of_it(tmp_path, changed):
    import keras

    features = {"x": ab.Numbers("float32", (4,)), "y": ab.Numbers("float32", (1,))}
    for name, sign in (("a", 1.0), ("b", -1.0)):
        records = [{"x": np.full(4, sign * n, "float32"), "y": np.full(1, n, "float32")} for n in range(40)]
        ab.write(tmp_path / f"{name}.tfrecord", records)

    def model():
        made = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
        made.compile("sgd", "mse")
        return made

    def stream(name, function):
        data = ab.read(str(tmp_path / f"{name}.tfrecord"), features).map(function, batched=True)
        return data.batch(10).as_supervised("x", "y")

    started_at = time.time()
    options = {"verbose": 0, "checkpoint": tmp_path / "state"}
    ab.fit(model(), stream("a", lambda columns: columns if started_at else None), **options)
    started_at += 1
    # what a function finds around it may be another every time
    ab.fit(model(), stream("a", lambda columns: columns if started_at else None), **options)
    other = stream("b", lambda columns: columns if started_at else None)
    if changed == "another function":
        other = stream("a", lambda columns: {**columns, "x": -columns["x"]})
    with pytest.raises(ChangedSince, match=r"^the data changed"):
        ab.fit(model(), other, **options)
