"""Trains without naming a limit, in a process that has one all the same; tells how.

`python -m tests.train_plan.unasked_child space`: its address space is limited, as by `ulimit -v`;
`dataset`: of its data nobody knows how many rows a batch has.
"""

import json
import os
import resource
import sys
from typing import Any

from anybatch.memory import ROOT, numbers_by_name

ROOM_BYTES = 200 << 20
BATCH_SIZE = 8192
"""Twice what the limits allow, whichever allocator TensorFlow chooses."""


def main(*, limit_space: bool, as_dataset: bool) -> dict[str, Any]:
    import keras
    import numpy as np

    import anybatch as ab

    keras.utils.set_random_seed(1)
    wide = keras.layers.Dense(4096, activation="tanh")
    model = keras.Sequential([keras.Input((64,)), wide, keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.random.default_rng(0).normal(size=(2 * BATCH_SIZE, 64)).astype("float32")
    if limit_space:
        limit = numbers_by_name(ROOT / "proc" / "self" / "status")["VmSize"] * 1024 + ROOM_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    given = {"x": x, "y": x[:, :1], "batch_size": BATCH_SIZE}
    if as_dataset:
        import tensorflow as tf

        given = {"x": tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(BATCH_SIZE)}
    history = ab.fit(model, **given, epochs=2, verbose=0)
    return {
        "parts": history.plan.parts,
        "events": [str(event) for event in history.events],
        "products": os.environ.get("TENSORFLOW_USE_CUSTOM_CONTRACTION_KERNEL"),
    }


if __name__ == "__main__":
    chosen = sys.argv[1:]
    json.dump(main(limit_space="space" in chosen, as_dataset="dataset" in chosen), sys.stdout)
