"""Sentences of different lengths: padded to the whole batch, masked, and split by what Keras divides by.

A mean over words is not a mean over sentences: parts are weighed by their words. Run it with
`python examples/train_text.py`.
"""

import tempfile
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

import anybatch as ab

WORDS = 200
FEATURES = {"words": ab.Ragged("int64"), "tags": ab.Ragged("int64")}


def main(sentences: int = 2000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ab.write(f"{folder}/text.tfrecord", written(sentences))
        data = (
            ab.read(f"{folder}/*.tfrecord", FEATURES)
            .shuffle(seed=3)
            .batch(256)
            .as_supervised("words", "tags")
        )
        model = tagger()
        history = ab.fit(model, data, epochs=3, micro_batch_size=64)
        print(history.plan)
        print(ab.check_exact(model, next(iter(data))))


def written(sentences: int) -> Iterator[dict[str, Any]]:
    """Yield sentences of up to 30 words; a word's tag is its remainder by 3."""
    random = np.random.default_rng(0)
    for length in random.integers(3, 30, sentences):
        words = random.integers(1, WORDS, length)
        yield {"words": words, "tags": words % 3}


def tagger() -> keras.Model:
    layers = [keras.layers.Embedding(WORDS, 16, mask_zero=True), keras.layers.Dense(3)]
    model = keras.Sequential([keras.Input((None,), dtype="int64"), *layers])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01, clipnorm=1.0), loss, weighted_metrics=["accuracy"])
    return model


if __name__ == "__main__":
    main()
