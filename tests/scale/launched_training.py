"""A training for one process or several workers, as an ordinary script: `launched_training.py OUT [options]`.

Three small models, one `fit` each, in double precision: what they come to is written to OUT by worker 0.
"""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from keras import layers, ops

import anybatch as ab

ROWS, BATCH = 93, 23
"""No multiple of two or three; the last batch of an epoch has one row: all workers but one have none."""
WORDS, LENGTH = 40, 6
UPDATES_PER_EPOCH = 5


def rank() -> int:
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    return int(config.get("task", {}).get("index", 0))


def backwards(batch):
    return tuple(np.ascontiguousarray(column[::-1]) for column in batch)


def root_mean_square(y_true, y_pred):
    """One number per batch: it does not add up over parts."""
    return ops.sqrt(ops.mean(ops.square(y_true - y_pred)))


def table():
    random = np.random.default_rng(1)
    x, y, weights = (
        column.astype(keras.config.floatx())
        for column in (
            random.normal(size=(ROWS, 5)),
            random.normal(size=(ROWS, 2)),
            random.uniform(0.2, 2.0, ROWS),
        )
    )
    model = keras.Sequential(
        [
            keras.Input((5,)),
            layers.Dense(7, activation="tanh", kernel_regularizer="l2"),
            layers.Dense(2),
        ]
    )
    model.compile(keras.optimizers.AdamW(0.01, global_clipnorm=0.5), "mse", metrics=["mae", root_mean_square])
    stream = ab.from_arrays({"x": x, "y": y, "w": weights}).shuffle(seed=3)
    return model, stream.batch(BATCH).as_supervised("x", "y", "w"), (x[:31], y[:31])


def sentences():
    """Masked words: what a loss is divided by depends on the data, and gradients are slices."""
    random = np.random.default_rng(2)
    words = random.integers(1, WORDS, (ROWS, LENGTH)) * (np.arange(LENGTH) < random.integers(1, 7, (ROWS, 1)))
    model = keras.Sequential(
        [
            keras.Input((LENGTH,), dtype="int32"),
            layers.Embedding(WORDS, 4, mask_zero=True),
            layers.Dense(3),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
    stream = ab.from_arrays({"x": words, "y": words % 3}).shuffle(seed=4)
    # behind a filter nobody knows where a record lies before reading it; 10 is no multiple of 3
    kept = stream.filter(lambda record: record["x"][0] % 7 != 0)
    return model, kept.batch(10).as_supervised("x", "y"), None


def counts():
    """Every weight becomes minus the number of times that its sample was trained on."""
    model = keras.Sequential(
        [keras.Input((1,), dtype="int32"), layers.Embedding(ROWS, 1, embeddings_initializer="zeros")]
    )
    model.compile(keras.optimizers.SGD(1.0), keras.losses.MeanAbsoluteError(reduction="sum"))
    far_below = np.full((ROWS, 1, 1), -1e6)
    stream = ab.from_arrays((np.arange(ROWS)[:, None], far_below)).shuffle(seed=5)
    return model, stream.batch(BATCH), None


KINDS = {"table": table, "sentences": sentences, "counts": counts}


class Slow(keras.callbacks.Callback):
    """Leaves time for something to happen between updates, and says that they are made."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def on_train_batch_end(self, batch, logs=None):
        if self._seconds:
            print(f"update {int(self.model.optimizer.iterations)}", flush=True)
            time.sleep(self._seconds)


class Dying(keras.callbacks.Callback):
    """Lets a worker kill itself at some updates, each of which it meets once."""

    def __init__(self, kind: str, told: list[str], by: str, notes: Path) -> None:
        super().__init__()
        self._kind = kind
        self._told = told
        self._signal = signal.Signals[by]
        self._notes = notes

    def on_train_batch_end(self, batch, logs=None):
        now = f"{self._kind}:{rank()}@{int(self.model.optimizer.iterations)}"
        note = self._notes.with_suffix(f".{now}")
        if now in self._told and not note.exists():
            note.touch()
            os.kill(os.getpid(), self._signal)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS))
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--parts", default="", help="the largest part of each worker: 5,3,7")
    parser.add_argument("--die", nargs="*", default=[], help="KIND:RANK@UPDATE")
    parser.add_argument("--by", default="SIGKILL", help="the signal of such deaths")
    parser.add_argument("--floatx", default="float64")
    parser.add_argument("--slow", default="0", help="seconds between updates, of all or of each: 0,0.05,0")
    parser.add_argument("--reversed", action="store_true", help="the rows of every batch the other way round")
    options = parser.parse_args()
    keras.config.set_floatx(options.floatx)
    keras.config.set_dtype_policy(options.floatx)
    sizes = [int(size) for size in options.parts.split(",") if size]
    part = sizes[rank()] if sizes else "auto"
    pauses = [float(seconds) for seconds in options.slow.split(",")]
    found = {}
    for kind in options.kinds:
        # other weights on every worker: worker 0's are to count
        keras.utils.set_random_seed(7 + rank())
        model, stream, validation = KINDS[kind]()
        if options.reversed:
            stream = stream.map(backwards)
        history = ab.fit(
            model,
            stream,
            epochs=options.epochs,
            micro_batch_size=part,
            validation_data=validation,
            validation_batch_size=10,
            callbacks=[
                Slow(pauses[rank() % len(pauses)]),
                Dying(kind, options.die, options.by, options.out),
            ],
            verbose=0,
        )
        found |= {f"{kind}/{n}": weight for n, weight in enumerate(model.get_weights())}
        found |= {f"{kind}/{name}": np.array(values) for name, values in history.history.items()}
        print(f"{kind}: {int(model.optimizer.iterations)} updates", flush=True)
    if rank() == 0:
        np.savez(options.out, **found)


if __name__ == "__main__":
    sys.exit(main())
