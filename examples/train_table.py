"""A table of 1,000,000 rows by 100 columns, straight from TFRecord, at batch 512.

Run it with `python examples/train_table.py`; `--rows 100000` is quicker.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

import anybatch as ab

COLUMNS = 100
FEATURES = {"row": ab.Numbers("float32", (COLUMNS,)), "label": ab.Numbers("float32", (1,))}


def main(rows: int = 1_000_000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        ab.write(f"{folder}/table.tfrecord", table(rows), shards=8)
        print(f"{rows:,} rows written in {time.perf_counter() - started:.0f} s")
        data = (
            ab.read(f"{folder}/*.tfrecord", FEATURES).shuffle(seed=1).batch(512).as_supervised("row", "label")
        )
        started = time.perf_counter()
        history = ab.fit(regressor(), data, verbose=2)
        print(f"{rows / (time.perf_counter() - started):,.0f} rows/s, tracing included")
        print(history.plan)


def table(rows: int) -> Iterator[dict[str, Any]]:
    random = np.random.default_rng(0)
    truth = random.normal(size=(COLUMNS, 1)).astype("float32")
    for _ in range(0, rows, 1000):
        some = random.normal(size=(1000, COLUMNS)).astype("float32")
        for row, label in zip(some, some @ truth, strict=True):
            yield {"row": row, "label": label}


def regressor() -> keras.Model:
    layers = [keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((COLUMNS,)), *layers])
    model.compile("adam", "mse")
    return model


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    main(parser.parse_args().rows)
