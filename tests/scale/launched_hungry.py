"""A training whose parts are too large for one of two workers: `launched_hungry.py OUT`."""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

import anybatch as ab

BATCH = 2048


def main() -> None:
    rank = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {}).get("index", 0)
    alone = "TF_CONFIG" not in os.environ
    keras.utils.set_random_seed(1)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.Conv2D(32, 3, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10),
        ]
    )
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    random = np.random.default_rng(0)
    x = random.normal(size=(BATCH, 32, 32, 3)).astype("float32")
    stream = ab.from_arrays((x, random.integers(0, 10, BATCH))).shuffle(seed=1).batch(BATCH)
    ab.fit(model, stream, micro_batch_size=BATCH if rank == 0 and not alone else 64, epochs=2, verbose=0)
    if rank == 0:
        np.savez(sys.argv[1], *model.get_weights())


if __name__ == "__main__":
    main()
