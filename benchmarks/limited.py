"""Train one model in one of several ways: `python benchmarks/limited.py WAY OUT`.

A script of its own, since it may die of a limit. What it learnt lies in OUT if it came to its end.
"""

import argparse
import json
import os
import resource
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

# for everybody: under a limit on address space TensorFlow's other products may be wrong without a word
os.environ |= {"TENSORFLOW_USE_CUSTOM_CONTRACTION_KERNEL": "false", "TF_ENABLE_ONEDNN_OPTS": "0"}

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

import anybatch as ab
from anybatch.memory import held

BATCH, UPDATES = 512, 8
PART_BY_HAND = 64
LEARNING_RATE = 1e-3
Array = NDArray[np.float32]


class Pace(keras.callbacks.Callback):
    """Notes when batches end: the first one has planning and tracing in it, the others are the pace."""

    def __init__(self, batch_size: int) -> None:
        super().__init__()
        self.batch_size = batch_size
        self.ends: list[float] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Note the time."""
        self.ends.append(time.perf_counter())

    def told(self, start: float) -> dict[str, float | None]:
        """Return how long the first batch took, and how many samples passed in a second from then on."""
        if not self.ends:
            return {"first_seconds": None, "later_rate": None}
        first, *later = self.ends
        rate = len(later) * self.batch_size / (later[-1] - first) if later else None
        return {"first_seconds": first - start, "later_rate": rate}


Way = Callable[..., Pace]


def main() -> None:
    """Train as the command line says, and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("out", type=Path)
    parser.add_argument("--room", type=int, help="bytes by which the address space may grow in training")
    parser.add_argument("--checkpoint", help="a folder from which a restart goes on")
    chosen = parser.parse_args()
    x, y = arrays()
    # threads are started and what is done once is done before anything is limited
    plain(model(), x[:2], y[:2])
    trained, base_bytes = model(), held().counted_bytes
    more = {} if chosen.room is None else {"memory": base_bytes + chosen.room}
    limit_address_space(chosen.room)
    start = time.perf_counter()
    pace = WAYS[chosen.way](trained, x, y, checkpoint=chosen.checkpoint, **more)
    told = {"seconds": time.perf_counter() - start, "records": len(x), "base_bytes": base_bytes}
    limit_address_space(None)
    write(chosen.out, trained, told | pace.told(start))


def arrays() -> tuple[Array, Array]:
    """Return the same samples every time."""
    x = np.random.default_rng(0).normal(size=(BATCH * UPDATES, 64)).astype("float32")
    return x, np.sin(x[:, :1])


def model() -> keras.Model:
    """Return the same model every time: little to compute, much to remember for the way back."""
    keras.utils.set_random_seed(1)
    memories = [keras.layers.RepeatVector(24), *(keras.layers.Activation("softsign") for _ in range(4))]
    ends = [keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(1)]
    made = keras.Sequential([keras.Input((64,)), keras.layers.Dense(1024), *memories, *ends])
    made.compile(keras.optimizers.Adam(LEARNING_RATE), "mse")
    return made


def limit_address_space(room_bytes: int | None) -> None:
    """Let this process grow by so much and no more: TensorFlow raises where it cannot allocate."""
    limit = resource.RLIM_INFINITY
    if room_bytes is not None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + room_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def write(path: Path, trained: keras.Model, told: Mapping[str, float | None]) -> None:
    """Write weights and figures; the file appears whole."""
    weights = np.concatenate([np.asarray(weight).ravel() for weight in trained.get_weights()])
    unfinished = path.with_suffix(".part.npz")
    np.savez(
        unfinished, weights=weights, told=json.dumps({**told, "updates": int(trained.optimizer.iterations)})
    )
    unfinished.replace(path)


def plain(trained: keras.Model, x: Array, y: Array, *, batch_size: int = BATCH, **_: Any) -> Pace:
    """`model.fit`."""
    pace = Pace(batch_size)
    trained.fit(x, y, batch_size=batch_size, shuffle=False, verbose=0, callbacks=[pace])
    return pace


def halved(trained: keras.Model, x: Array, y: Array, **_: Any) -> Pace:
    """Catch the error and call `model.fit` again with half the batch, as the articles have it."""
    batch_size = BATCH
    while True:
        try:
            return plain(trained, x, y, batch_size=batch_size)
        except tf.errors.ResourceExhaustedError:
            batch_size //= 2


def accumulated(trained: keras.Model, x: Array, y: Array, **_: Any) -> Pace:
    """Keras' own accumulation, in parts that somebody has found by trying."""
    steps = {"gradient_accumulation_steps": BATCH // PART_BY_HAND}
    trained.compile(keras.optimizers.Adam(LEARNING_RATE, **steps), "mse")
    return plain(trained, x, y, batch_size=PART_BY_HAND)


def planned(trained: keras.Model, x: Array, y: Array, **more: Any) -> Pace:
    """`ab.fit` with the memory there is."""
    pace = Pace(BATCH)
    ab.fit(trained, x, y, batch_size=BATCH, shuffle=False, verbose=0, callbacks=[pace], **more)
    return pace


def whole_first(trained: keras.Model, x: Array, y: Array, **more: Any) -> Pace:
    """`ab.fit` that is told to begin with whole batches, which do not fit."""
    return planned(trained, x, y, micro_batch_size=BATCH, **more)


WAYS: Mapping[str, Way] = {
    "plain": plain,
    "halved": halved,
    "accumulated": accumulated,
    "planned": planned,
    "whole_first": whole_first,
}


if __name__ == "__main__":
    main()
