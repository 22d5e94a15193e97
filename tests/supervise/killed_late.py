"""A training that outgrows its memory late, by its model or its pipeline: `killed_late.py OUT KIND`."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

import anybatch as ab
from anybatch.handover import received_orders

BATCH, EPOCHS, QUIET = 64, 4, 20
HELD = []


def grow(step) -> None:
    """Hold more with every update behind the first few, in the first attempt of a supervised run alone."""
    orders = received_orders()
    if orders is not None and orders.attempt == 1 and step >= QUIET:
        HELD.append(np.ones(8 << 20, "uint8"))


def train(out, kind) -> None:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    x = np.random.default_rng(0).normal(size=(16 * BATCH, 16)).astype("float32")
    steps = iter(range(10**6))

    def mapped(part):
        grow(next(steps))
        return part

    stream = ab.from_arrays((x, x.sum(1, keepdims=True))).shuffle(seed=1).batch(BATCH)
    growing = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: grow(next(steps)))
    callbacks = [growing] if kind == "model" else []
    ab.fit(
        model,
        stream.map(mapped) if kind == "pipeline" else stream,
        epochs=EPOCHS,
        verbose=0,
        callbacks=callbacks,
    )
    np.savez(out, *model.get_weights(), parts=1)


if __name__ == "__main__":
    train(*sys.argv[1:])
