"""A script trains once the corrected lines are put in."""

import re

import numpy as np
import pytest

import anybatch as ab
from anybatch.doctor import lint_text
from tests.doctor.flawed_scripts import FLAWED
from tests.doctor.test_lint import applied, planted

RECORDS, SIDE = 320, 4
FEWER = {"60_?000": "600", "20000": "200"}
"""Sizes that are there to be too large, and would only take time."""


def corrected_scripts():
    for script in FLAWED:
        _, code, _ = planted(script)
        for finding in lint_text(script):
            if finding.code == code and finding.replaces:
                yield pytest.param(applied(script, finding), id=code)


def with_fewer(script):
    for size, smaller in FEWER.items():
        script = re.sub(size, smaller, script)
    return script


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def features(tf):
    return {
        "image": tf.io.FixedLenFeature([SIDE, SIDE, 1], tf.float32),
        "label": tf.io.FixedLenFeature([1], tf.int64),
    }


def write_files(compression):
    rng = np.random.default_rng(0)
    records = [{"image": rng.normal(size=SIDE * SIDE), "label": at % 2} for at in range(RECORDS)]
    for name in ("a.tfrecord", "b.tfrecord", "train.tfrecord", "train/part.tfrecord"):
        ab.write(name, records, compression=compression)


def a_model(tf):
    """A model of whatever a script gives it: records as they are, dictionaries, pictures or numbers."""

    class Anything(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.scores = tf.keras.layers.Dense(2)

        def call(self, x, training=False):
            if isinstance(x, dict):
                x = x["image"]
            elif x.dtype == tf.string:
                x = tf.io.parse_example(x, features(tf))["image"]
            return self.scores(tf.reshape(tf.cast(x, tf.float32), [tf.shape(x)[0], -1]))

        def build(self, shape):
            sizes = shape["image"] if isinstance(shape, dict) else shape
            self.scores.build((None, int(np.prod(sizes[1:])) if len(sizes) > 1 else SIDE * SIDE))

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return tf.reduce_mean(tf.square(y_pred - 1.0))

    return Anything()


def taken_for_granted(tf, script):
    """What a script's lines use and do not make."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(64, 3)).astype("float32"), rng.integers(0, 2, (64, 1))
    model, optimizer = a_model(tf), tf.keras.optimizers.SGD(0.01)
    model.compile(optimizer)
    if "GradientTape" in script:
        model(x[:1])
    parts = [(x[at : at + 8], y[at : at + 8]) for at in range(0, 64, 8)]

    def parse(record):
        one = tf.io.parse_example(record, features(tf))
        return one["image"], one["label"]

    def loss_fn(wanted, given):
        return tf.reduce_mean(tf.square(tf.cast(wanted, tf.float32)[:, :1] - given))

    data = [parts[:4], parts[4:]] if "for whole in data" in script else parts
    reading = {"np": np, "files": ["a.tfrecord", "b.tfrecord"], "FEATURES": features(tf), "parse": parse}
    training = {"model": model, "optimizer": optimizer, "loss_fn": loss_fn}
    placeholders = {"x_train": x, "batch_size": 10, "accumulation_steps": 4}
    return {**reading, **training, **placeholders, "x": x, "y": y, "data": data}


@pytest.mark.parametrize("script", list(corrected_scripts()))
def test_a_corrected_script_trains(tf, tmp_path, monkeypatch, script):
    monkeypatch.chdir(tmp_path)
    write_files("GZIP" if "GZIP" in script else None)
    names = taken_for_granted(tf, script)
    exec(compile(with_fewer(script), "script.py", "exec"), names)
    if "train_step" in names:
        for x, y in names["data"]:
            names["train_step"](x, y)
    assert names["optimizer"].iterations > 0
    weights = names["model"].get_weights()
    assert weights
    assert all(np.isfinite(one).all() for one in weights)
