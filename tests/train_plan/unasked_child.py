"""Trains without naming a limit, in a process that has one all the same; tells how.

`python -m tests.train_plan.unasked_child space`: its address space is limited, as by `ulimit -v`.
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


def main(*, limit_space: bool) -> dict[str, Any]:
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
    history = ab.fit(model, x, x[:, :1], batch_size=BATCH_SIZE, epochs=2, verbose=0)
    return {
        "parts": history.plan.parts,
        "events": [str(event) for event in history.events],
        "products": os.environ.get("TENSORFLOW_USE_CUSTOM_CONTRACTION_KERNEL"),
    }


if __name__ == "__main__":
    json.dump(main(limit_space=sys.argv[1:] == ["space"]), sys.stdout)
