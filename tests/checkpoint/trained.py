"""A small training that can be killed.

`python -m tests.checkpoint.trained FOLDER KILL_AT EPOCHS KIND WRITING`: it writes down every update
with its samples, and at the end weights and history.
"""

import json
import os
import sys
from pathlib import Path
from unittest.mock import patch

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

import anybatch as ab
from anybatch.train.checkpoint import Checkpoint
from anybatch.train.transaction import Transaction

SAMPLES, BATCH, EPOCHS = 320, 32, 3


class Diary(keras.callbacks.Callback):
    """Writes down every update and its samples, so that nobody can make one in secret."""

    def __init__(self, file):
        super().__init__()
        self.file = file
        self.counted = 0
        self.samples = []
        self.numbers = {row.tobytes(): number for number, row in enumerate(arrays()[0])}

    def reading_along(self, update):
        """Return what makes an update, with a look at the rows that go into it."""

        def read_along(transaction, parts, batch_size):
            self.samples.clear()
            return update(transaction, map(self.read, parts), batch_size)

        return read_along

    def read(self, part):
        (x, _), _ = part
        self.samples += [self.numbers[row.tobytes()] for row in np.asarray(x)]
        return part

    def on_train_batch_end(self, batch, logs=None):
        self.counted += 1
        with self.file.open("a") as out:
            print(int(self.model.optimizer.iterations), batch, *self.samples, file=out)


def model():
    keras.utils.set_random_seed(3)
    layers = keras.layers
    made = keras.Sequential(
        [keras.Input((8,)), layers.Dense(16, "relu"), layers.Dropout(0.3), layers.Dense(1)]
    )
    schedule = keras.optimizers.schedules.ExponentialDecay(0.01, 5, 0.9)
    made.compile(keras.optimizers.Adam(schedule), "mse", metrics=["mae"])
    return made


def arrays():
    x = np.random.default_rng(0).normal(size=(SAMPLES, 8)).astype("float32")
    return x, x.sum(1, keepdims=True)


def stream():
    x, y = arrays()
    return ab.from_arrays((x, y)).shuffle(seed=5).batch(BATCH).map(lambda part: part)


def records(out):
    """The same out of a file, which the first process writes that comes to its end."""
    file = out / "data.tfrecord"
    if not file.exists():
        ab.write(file, [{"x": x, "y": y} for x, y in zip(*arrays(), strict=True)])
    features = {"x": ab.Numbers("float32", (8,)), "y": ab.Numbers("float32", (1,))}
    return ab.read(file, features).shuffle(seed=5).batch(BATCH).as_supervised("x", "y")


def dataset(buffer=100):
    x, y = arrays()
    found = tf.data.Dataset.from_tensor_slices((x, y))
    found = found if buffer is None else found.shuffle(buffer, seed=5)
    return found.batch(BATCH).prefetch(2)


INPUTS = {"stream": lambda _: stream(), "dataset": lambda _: dataset(), "records": records}
PARTS = {"records": 10}
"""Batches of records are trained in parts."""


AT_ONCE, BEHIND = "at-once", "behind"
WRITING = {
    AT_ONCE: {"due": lambda self: True, "save_later": Checkpoint.save_now},
    BEHIND: {"due": lambda self: not self._writer.busy},
}
"""When states are written: on the disk before training goes on, or while it does, one behind the other."""


def main(out, kill_at, *, epochs=EPOCHS, kind="stream", writing=AT_ONCE):
    """Train, and be killed by the operating system behind update `kill_at` of this process."""
    diary = Diary(out / "diary")
    read_along = diary.reading_along(Transaction.update)
    with patch.multiple(Checkpoint, **WRITING[writing]), patch.object(Transaction, "update", read_along):
        train(out, kill_at, epochs, kind, diary)


def train(out, kill_at, epochs, kind, diary):
    killing = keras.callbacks.LambdaCallback(
        on_train_batch_begin=lambda batch, logs: os.kill(os.getpid(), 9) if diary.counted == kill_at else None
    )
    x, y = arrays()
    trained = model()
    history = ab.fit(
        trained,
        INPUTS[kind](out),
        micro_batch_size=PARTS.get(kind, "auto"),
        epochs=epochs,
        validation_data=(x[:64], y[:64]),
        checkpoint=out / "state",
        verbose=0,
        callbacks=[diary, killing],
    )
    np.savez(out / "weights.npz", *trained.get_weights(), *[np.array(v) for v in trained.optimizer.variables])
    (out / "history.json").write_text(json.dumps([history.epoch, history.history]))


if __name__ == "__main__":
    tf.config.experimental.enable_op_determinism()
    folder, kill_at, epochs, kind, writing = sys.argv[1:]
    main(Path(folder), int(kill_at), epochs=int(epochs), kind=kind, writing=writing)
