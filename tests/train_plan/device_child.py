"""Plans and trains in a process whose tensors lie in a capped allocator, which counts as a device."""

import json
import sys
from typing import Any

WIDTH = 128
BATCH_SIZE = 8192


def model() -> Any:
    import keras

    keras.utils.set_random_seed(1)
    # Many layers of equal width: which operation runs first differs from run to run and may hold one result
    # longer, which is then little beside all that the way back needs.
    layers = [keras.layers.Dense(WIDTH, activation="tanh") for _ in range(24)]
    made = keras.Sequential([keras.Input((WIDTH,)), *layers, keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made


def main(device_memory: str) -> dict[str, Any]:
    import numpy as np
    import tensorflow as tf

    import anybatch as ab

    # A device runs one operation after another; so does this.
    tf.config.threading.set_inter_op_parallelism_threads(1)
    x, y = np.ones((2 * BATCH_SIZE, WIDTH), "float32"), np.ones((2 * BATCH_SIZE, 1), "float32")
    trained = model()
    found = ab.plan(trained, (x, y), batch_size=BATCH_SIZE, device_memory=device_memory)
    told = {
        "parts": found.parts,
        "predicted": found.predicted_peak_bytes,
        "limit": found.limit_bytes,
        "notes": list(found.notes),
    }
    forget_peak()
    history = ab.fit(trained, x, y, batch_size=BATCH_SIZE, device_memory=device_memory, verbose=0)
    return told | {
        "peak": peak(),
        "events": [event.kind for event in history.events],
        "parts of fit": history.plan.parts,
    }


def forget_peak() -> None:
    """A probe may look at a size that turns out too large, so only training counts."""
    import tensorflow as tf

    tf.config.experimental.reset_memory_stats("CPU:0")


def peak() -> int:
    import tensorflow as tf

    return int(tf.config.experimental.get_memory_info("CPU:0")["peak"])


if __name__ == "__main__":
    json.dump(main(sys.argv[1]), sys.stdout)
