"""Trains on the first so many records, as many updates in any case; prints the most that the process held.

Run as `python -m tests.train.growing FOLDER RECORDS EPOCHS`.
"""

import json
import sys
import threading
from typing import Any

from anybatch.memory import held

FEATURES = {"image": (48, 48, 3), "label": ()}
BATCH = 64


def model() -> Any:
    import keras

    keras.utils.set_random_seed(1)
    layers = keras.layers
    stages = [layers.Conv2D(16, 3, activation="relu"), layers.GlobalAveragePooling2D(), layers.Dense(10)]
    made = keras.Sequential([keras.Input(FEATURES["image"]), layers.Rescaling(1 / 255), *stages])
    made.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return made


def main(folder: str, records: int, epochs: int) -> dict[str, int]:
    import anybatch as ab

    features = {"image": ab.Raw("uint8", FEATURES["image"]), "label": ab.Numbers("int64")}
    data = ab.read(f"{folder}/*.tfrecord", features).take(records).shuffle(seed=1).batch(BATCH)
    # by looking often: the kernel's own high-water mark has the pages of mapped files in it
    highest, ended = [0], threading.Event()

    def look() -> None:
        while not ended.wait(0.002):
            highest[0] = max(highest[0], held().counted_bytes)

    looking = threading.Thread(target=look)
    looking.start()
    history = ab.fit(model(), data.as_supervised("image", "label"), epochs=epochs, memory="2GiB", verbose=0)
    ended.set()
    looking.join()
    return {"peak_bytes": highest[0], "epochs": len(history.history["loss"])}


if __name__ == "__main__":
    json.dump(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), sys.stdout)
