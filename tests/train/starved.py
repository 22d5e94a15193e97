"""Trains under an address-space limit that shrinks and grows at random moments; keeps the final weights.

Run as `python -m tests.train.starved SEED MEGABYTES FILE`: the limit is that much above what the process has
after its first updates, and the weights go into the file. Without a limit: `MEGABYTES` 0. TensorFlow chooses
how it multiplies as it would under `ulimit -v`.
"""

import json
import random
import resource
import sys
from pathlib import Path
from typing import Any

from tests.train.kept_arrays import keep

UPDATES = 12
BATCH = 512
PLENTY = 1 << 46


def main(seed: int, megabytes: int, file: Path) -> None:
    import keras
    import numpy as np

    from anybatch.train.refusals import OneSampleDoesNotFit, UpdateCutShort

    # as `ulimit -v` would: there is a limit before anything is computed
    resource.setrlimit(resource.RLIMIT_AS, (PLENTY, resource.RLIM_INFINITY))
    keras.utils.set_random_seed(1)
    wide = keras.layers.Dense(4096, activation="tanh")
    model = keras.Sequential([keras.Input((64,)), wide, keras.layers.Dense(256), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(1e-3), "mse", metrics=["mae"])
    data = np.random.default_rng(0)
    x = data.normal(size=(UPDATES * BATCH, 64)).astype("float32")
    y = x[:, :1] * 2
    limit = Squeeze(seed, megabytes)
    try:
        history = fitted(model, x, y, limit.callback(keras))
    except (OneSampleDoesNotFit, UpdateCutShort) as error:
        _lift()
        json.dump({"stopped" if isinstance(error, OneSampleDoesNotFit) else "cut": str(error)}, sys.stdout)
        return
    keep(file, model.get_weights())
    events = [f"{event.kind} {event.phase}" for event in history.events]
    json.dump({"events": events, "loss": history.history["loss"]}, sys.stdout)


def fitted(model: Any, x: Any, y: Any, callback: Any) -> Any:
    import anybatch as ab

    return ab.fit(
        model,
        x,
        y,
        batch_size=BATCH,
        epochs=2,
        shuffle=False,
        verbose=0,
        callbacks=[callback],
        validation_data=(x[:BATCH], y[:BATCH]),
    )


class Squeeze:
    """Sets the limit at random updates of the run, and takes it away at others."""

    def __init__(self, seed: int, megabytes: int) -> None:
        self._random = random.Random(seed)
        self._bytes = megabytes << 20

    def callback(self, keras: Any) -> Any:
        return keras.callbacks.LambdaCallback(
            on_train_batch_begin=lambda batch, logs: self._turn(batch), on_train_end=lambda logs: _lift()
        )

    def _turn(self, batch: int) -> None:
        if not self._bytes or batch < 2:
            return
        room = self._random.choice([0.5, 0.7, 1.0, 3.0])
        limit = _address_space() + int(room * self._bytes)
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def _lift() -> None:
    """Let what comes after training have memory again: it is not what is tested."""
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
