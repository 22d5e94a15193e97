"""A training that needs more memory than it may have, as an ordinary script: `killed_training.py OUT`."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

import anybatch as ab

BATCH = 512


def train(out) -> None:
    keras.utils.set_random_seed(1)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            layers.Conv2D(96, 3, activation="relu"),
            layers.Conv2D(32, 3, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10),
        ]
    )
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    random = np.random.default_rng(0)
    x = random.normal(size=(2 * BATCH, 32, 32, 3)).astype("float32")
    stream = ab.from_arrays((x, random.integers(0, 10, 2 * BATCH))).shuffle(seed=1).batch(BATCH)
    history = ab.fit(model, stream, micro_batch_size=BATCH, epochs=2, verbose=0)
    np.savez(out, *model.get_weights(), parts=history.plan.parts)


if __name__ == "__main__":
    train(sys.argv[1])
