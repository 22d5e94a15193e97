"""Images from TFRecord, at a batch size whose activations would not fit: split, with the same updates.

Run it with `python examples/train_images.py`. It makes its own data in a temporary folder.
"""

import tempfile
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

import anybatch as ab

SIDE = 28
FEATURES = {"image": ab.Raw("uint8", (SIDE, SIDE, 1)), "label": ab.Numbers("int64")}


def main(records: int = 4000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ab.write(f"{folder}/train.tfrecord", drawn(records), shards=4)
        data = (
            ab.read(f"{folder}/*.tfrecord", FEATURES)
            .shuffle(seed=7)
            .map(scaled, batched=True)
            .batch(500)
            .as_supervised("image", "label")
        )
        history = ab.fit(classifier(), data, epochs=2, micro_batch_size=128)
        print(history.plan)


def drawn(records: int) -> Iterator[dict[str, Any]]:
    """Yield images of one bright column, whose place is the label."""
    random = np.random.default_rng(0)
    for label in random.integers(0, 10, records):
        image = random.integers(0, 100, (SIDE, SIDE, 1), dtype=np.uint8)
        image[:, 2 * label + 4] += 120
        yield {"image": image.tobytes(), "label": label}


def scaled(columns: dict[str, Any]) -> dict[str, Any]:
    return {**columns, "image": columns["image"].astype("float32") / 255}


def classifier() -> keras.Model:
    model = keras.Sequential(
        [
            keras.Input((SIDE, SIDE, 1)),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.003), loss, metrics=["accuracy"])
    return model


if __name__ == "__main__":
    main()
