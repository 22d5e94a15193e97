"""Memory beside Keras' metrics: in the progress bar, and in TensorBoard's files."""

import re
from itertools import count

import keras
import numpy as np
import pytest
import tensorflow as tf

import anybatch as ab
from anybatch.train.gauge import Gauge, Level, Pace, Reading

X, Y = np.ones((32, 3), "float32"), np.ones((32, 1), "float32")


@pytest.fixture
def model():
    made = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made


def plain(text):
    """Return what a terminal shows last."""
    return re.sub(r"\x1b\[[0-9;]*m|\x08", "", text).split("\r")[-1]


def test_the_bar_shows_samples_parts_and_memory_beside_the_metrics(model, capsys):
    history = ab.fit(model, X, Y, batch_size=8, micro_batch_size=4, verbose=1)
    shown = plain(capsys.readouterr().out)
    assert re.search(
        r"4/4 .* - loss: [0-9.e-]+ - parts: 2 - memory: [0-9.]+ .iB of [0-9.]+ .iB - samples/s: [0-9,.]+",
        shown,
    )
    assert set(history.history) == {"loss"}


def test_one_line_per_epoch_has_it_too(model, capsys):
    ab.fit(model, X, Y, batch_size=8, verbose=2)
    assert re.search(r"loss: [0-9.e-]+ - parts: 1 - memory: .* - samples/s: [0-9]", capsys.readouterr().out)


def test_silence_stays_silent_and_a_bar_of_ones_own_stays_alone(model, capsys):
    ab.fit(model, X, Y, verbose=0)
    assert capsys.readouterr().out == ""
    ab.fit(model, X, Y, verbose=1, callbacks=[keras.callbacks.ProgbarLogger()])
    assert "memory" not in capsys.readouterr().out


def test_other_callbacks_see_the_logs_of_keras(model):
    seen = []
    watching = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(set(logs)),
        on_epoch_end=lambda epoch, logs: seen.append(set(logs)),
    )
    ab.fit(model, X, Y, batch_size=8, callbacks=watching, verbose=1)
    assert seen == [{"loss"}] * 5


def logged(folder):
    """Return (tag, update, value) of everything in TensorBoard's files."""
    found = []
    for file in sorted(folder.iterdir()):
        for raw in ab.read(str(file), bytes):
            event = tf.compat.v1.Event.FromString(raw)
            found += [
                (one.tag, event.step, float(tf.make_ndarray(one.tensor))) for one in event.summary.value
            ]
    return found


@pytest.mark.parametrize(("update_freq", "updates"), [("epoch", [4, 8]), (2, [2, 4, 4, 6, 8, 8])])
def test_a_log_for_tensorboard_has_what_the_bar_has(model, tmp_path, update_freq, updates):
    log = ab.memory_log(tmp_path, update_freq=update_freq)
    ab.fit(
        model, X, Y, batch_size=8, micro_batch_size=3, memory="64GiB", epochs=2, callbacks=[log], verbose=0
    )
    found = logged(tmp_path)
    assert [step for tag, step, _ in found if tag == "memory/held_bytes"] == updates
    assert {value for tag, _, value in found if tag == "training/parts"} == {3.0}
    values = {tag: value for tag, _, value in found}
    assert 0 < values["memory/held_bytes"] <= values["memory/peak_bytes"]
    assert values["memory/limit_bytes"] <= 64 << 30
    assert values["training/samples_per_second"] > 0


def test_the_log_works_under_keras_own_fit(model, tmp_path):
    model.fit(X, Y, callbacks=[ab.memory_log(tmp_path)], verbose=0)
    tags = {tag for tag, _, _ in logged(tmp_path)}
    assert tags == {"memory/held_bytes", "memory/limit_bytes", "memory/peak_bytes"}


@pytest.mark.parametrize("update_freq", [0, True, "step", 1.5])
def test_a_frequency_that_means_nothing_is_refused(update_freq):
    with pytest.raises(ValueError, match="update_freq"):
        ab.memory_log("nowhere", update_freq=update_freq)


class Half:
    """A memory that is half full."""

    name, limit_bytes = "GPU:0", 2 << 30

    def held_bytes(self):
        return 1 << 30


@pytest.mark.parametrize(("batch", "part", "parts"), [(10, 4, 3), (10, None, 1), (None, 4, None)])
def test_parts_are_told_where_the_batch_is_known(batch, part, parts):
    reading = Gauge([Half()], batch, lambda: part).reading(2.0)
    assert reading == Reading(batch and 2.0 * batch, parts, (Level("GPU:0", 1 << 30, 2 << 30),))
    assert reading.words()["GPU:0"] == "1 GiB of 2 GiB"


def test_a_pace_leaves_out_the_first_batch_and_counts_from_where_an_epoch_goes_on():
    clock = count(100)
    pace = Pace(lambda: next(clock))
    assert [pace.at(batches) for batches in (8, 10, 12)] == [None, 2.0, 2.0]
