"""Trains while memory runs out for real, in a process whose tensors are capped; prints what came of it.

Run as `python -m tests.train.hungry FOLDER SCENARIO…`: weights and slots go into files of that folder.

TensorFlow's own allocator on a CPU can be capped by an undocumented variable, so that running out is an
exception at a moment of one's choice. Somebody who holds memory meanwhile makes it run out where
a test wants it to.
"""

import gc
import json
import logging
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.train.kept_arrays import keep

CAP_MB = 96
CAP = {
    "TF_CPU_ALLOCATOR_USE_BFC": "1",
    "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(CAP_MB),
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # what runs out of memory inside oneDNN may end in signal 11 instead: seen in two of five runs
    "TF_ENABLE_ONEDNN_OPTS": "0",
}
BATCH = 1024
PIECE = 1 << 17
STEPS = 4
STILL = 10


class Holder:
    """Holds all memory but so much, until it is told to let go."""

    def __init__(self) -> None:
        self.held: list[Any] = []

    def leave(self, megabytes: float) -> None:
        import tensorflow as tf

        gc.collect()
        left = int((CAP_MB - megabytes) * 2**20)
        # until it stays so: threads of the step before may still let go of what they hold
        for _ in range(STILL):
            used = tf.config.experimental.get_memory_info("CPU:0")["current"]
            # not until it fails: the allocator waits ten seconds before it gives up
            for _ in range((left - used) // PIECE):
                self.held.append(tf.raw_ops.Empty(shape=[PIECE], dtype=tf.uint8, init=False))
            time.sleep(0.02)

    def let_go(self) -> None:
        self.held.clear()


class LettingGo(logging.Handler):
    """Lets go when the log says that memory ran out."""

    def __init__(self, holder: Holder) -> None:
        super().__init__()
        self._holder = holder

    def emit(self, record: logging.LogRecord) -> None:
        self._holder.let_go()


def wide() -> Any:
    """Few weights and many activations: splitting helps."""
    import keras

    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(2048, activation="tanh"), keras.layers.Dropout(0.0), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((32,)), *layers])
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    return model


def heavy() -> Any:
    """Many weights and few activations: the update needs most."""
    import keras

    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(1200), keras.layers.Dense(1200), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((32,)), *layers])
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    return model


def batches() -> list[Any]:
    import numpy as np

    random = np.random.default_rng(2)
    return [
        (random.normal(size=(BATCH, 32)).astype("float32"), random.normal(size=(BATCH, 1)).astype("float32"))
        for _ in range(STEPS)
    ]


def trained(model: Any, micro: int | None, at: str, leave: float) -> dict[str, Any]:
    """Train a few updates by parts; before the part named by `at` of the third update, memory gets short."""
    from anybatch.train.session import Session

    session, holder = Session(model, micro), Holder()
    letting_go = LettingGo(holder)
    if at == "commit":
        logging.getLogger("anybatch.train").addHandler(letting_go)
    for step, batch in enumerate(batches()):
        parts = pieces(batch, micro or BATCH, at if step == 2 else "", holder, leave)
        session.transaction.update(parts, BATCH)
        holder.let_go()
    logging.getLogger("anybatch.train").removeHandler(letting_go)
    return {
        "weights": model.get_weights(),
        "slots": [slot.numpy() for slot in model.optimizer.variables],
        "metrics": {name: float(value) for name, value in model.get_metrics_result().items()},
        "events": [[event.kind, event.phase] for event in session.events],
    }


def pieces(batch: Any, most: int, at: str, holder: Holder, leave: float) -> Iterator[Any]:
    x, y = batch
    starts = list(range(0, BATCH, most))
    moments = {"first": 0, "middle": len(starts) // 2, "last": len(starts) - 1}
    for number, start in enumerate(starts):
        if moments.get(at) == number:
            holder.leave(leave)
        yield (x[start : start + most], y[start : start + most]), start + most >= BATCH
    if at == "commit":
        holder.leave(leave)


def validated(leave: float) -> dict[str, Any]:
    """Evaluate with and without enough memory."""
    from anybatch.train.session import Session

    model, holder = wide(), Holder()
    session = Session(model, None)
    for step, batch in enumerate(batches()):
        if step == 1:
            holder.leave(leave)
        session.transaction.test(iter([(batch, True)]), BATCH)
    holder.let_go()
    return {
        "metrics": {name: float(value) for name, value in model.get_metrics_result().items()},
        "events": [[event.kind, event.phase] for event in session.events],
    }


def one_sample() -> str:
    """Return what is said when not even one sample fits."""
    import keras

    import anybatch as ab
    from anybatch.train.refusals import OneSampleDoesNotFit

    model, holder, before = wide(), Holder(), list[Any]()
    x, y = (column[:6] for column in batches()[0])

    def get_short(batch: int, logs: Any) -> None:
        if batch == 1:
            before.extend(weight.copy() for weight in model.get_weights())
            holder.leave(0.25)

    short = keras.callbacks.LambdaCallback(on_train_batch_begin=get_short)
    try:
        ab.fit(model, x, y, batch_size=3, micro_batch_size=1, callbacks=[short], verbose=0)
    except OneSampleDoesNotFit as error:
        holder.let_go()
        same = all((one == other).all() for one, other in zip(before, model.get_weights(), strict=True))
        return f"{error} [{'unchanged' if same else 'changed'}]"
    return "it fitted"


SCENARIOS: dict[str, Callable[[], Any]] = {
    "wide undisturbed": lambda: trained(wide(), None, "", 0),
    "wide whole": lambda: trained(wide(), None, "first", 12),
    "wide first": lambda: trained(wide(), 256, "first", 3),
    "wide middle": lambda: trained(wide(), 256, "middle", 3),
    "wide last": lambda: trained(wide(), 256, "last", 3),
    "heavy undisturbed": lambda: trained(heavy(), None, "", 0),
    "heavy commit": lambda: trained(heavy(), 256, "commit", 3),
    "validation undisturbed": lambda: validated(CAP_MB),
    "validation": lambda: validated(6),
    "one sample": one_sample,
}


def file_of(folder: Path, scenario: str, what: str) -> Path:
    return folder / f"{scenario} {what}.npz".replace(" ", "-")


def printable(folder: Path, scenario: str) -> Any:
    """Run a scenario; return what came of it but for arrays, which are in files then."""
    found = SCENARIOS[scenario]()
    for what in {"weights", "slots"} & set(found if isinstance(found, dict) else ()):
        keep(file_of(folder, scenario, what), found.pop(what))
    return found


if __name__ == "__main__":
    json.dump({name: printable(Path(sys.argv[1]), name) for name in sys.argv[2:]}, sys.stdout)
