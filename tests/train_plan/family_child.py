"""Plans and trains one model under one limit, in a process of its own; prints what came of it.

Run as `python -m tests.train_plan.family_child NAME MEGABYTES`: the limit is that much above what the process
holds when the model and its data are there. Without a number: what the whole batch takes.
`python -m tests.train_plan.family_child NAME MEGABYTES least` tells what is not refused, if that is more, and
`… NAME MEGABYTES sizes` tries every part size besides.
"""

import json
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from anybatch.memory import PeakWatch, give_back_freed, held
from anybatch.memory.kernel_files import ROOT, numbers_by_name
from anybatch.train.plan_search import FIRST_ROWS

MB = 1 << 20
PLENTY = 8 << 30
RUNS = 3
UPDATES = 3
SECONDS = 1.5
DUEL_SECONDS = 30.0
KEPT = 48 * MB
"""What a process may keep from one training to the next, which a limit without reserve has no room for."""


def dense() -> tuple[Any, Any, int]:
    layers = _layers()
    stages = [layers.Dense(width, activation="relu") for width in (2048, 64, 2048)]
    return _sequential((32,), [*stages, layers.Dense(10)]), _floats(32), 8192


def convolution() -> tuple[Any, Any, int]:
    layers = _layers()
    stages = [layers.Conv2D(filters, 3, activation="relu") for filters in (16, 16, 32)]
    pooled = [layers.GlobalAveragePooling2D(), layers.Dense(10)]
    return _sequential((32, 32, 3), [*stages, *pooled]), _floats(32, 32, 3), 512


def recurrent() -> tuple[Any, Any, int]:
    layers = _layers()
    return _sequential((64, 32), [layers.LSTM(64), layers.Dense(10)]), _floats(64, 32), 1024


def attention() -> tuple[Any, Any, int]:
    import keras

    layers = keras.layers
    words = keras.Input((64,), dtype="int32")
    x = layers.Embedding(2000, 64)(words)
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 16)(x, x))
        x = layers.LayerNormalization()(x + layers.Dense(64)(layers.Dense(256, activation="gelu")(x)))
    outputs = layers.Dense(10)(layers.GlobalAveragePooling1D()(x))
    return keras.Model(words, outputs), _indices(64, 2000), 256


def embedding() -> tuple[Any, Any, int]:
    layers = _layers()
    table = layers.Embedding(200_000, 64)
    after = [layers.GlobalAveragePooling1D(), layers.Dense(256, activation="relu"), layers.Dense(10)]
    return _sequential((64,), [table, *after], dtype="int32"), _indices(64, 200_000), 2048


def towers() -> tuple[Any, Any, int]:
    import keras

    layers = keras.layers
    inputs = {"left": keras.Input((64,), name="left"), "right": keras.Input((64,), name="right")}
    sides = [layers.Dense(64)(layers.Dense(2048, activation="tanh")(one)) for one in inputs.values()]
    one_side = _floats(64)
    return (
        keras.Model(inputs, layers.Dense(10)(layers.Concatenate()(sides))),
        lambda rows: {"left": one_side(rows), "right": one_side(rows)},
        4096,
    )


FAMILIES: dict[str, Callable[[], tuple[Any, Any, int]]] = {
    family.__name__: family for family in (dense, convolution, recurrent, attention, embedding, towers)
}


def _layers() -> Any:
    import keras

    return keras.layers


def _sequential(shape: tuple[int, ...], layers: list[Any], dtype: str = "float32") -> Any:
    import keras

    return keras.Sequential([keras.Input(shape, dtype=dtype), *layers])


def _floats(*shape: int) -> Callable[[int], Any]:
    import numpy as np

    return lambda rows: np.random.default_rng(0).normal(size=(rows, *shape)).astype("float32")


def _indices(length: int, words: int) -> Callable[[int], Any]:
    import numpy as np

    return lambda rows: np.random.default_rng(0).integers(0, words, (rows, length)).astype("int32")


class Highest:
    """The most this process ever held, though others reset the kernel's mark meanwhile."""

    def __init__(self) -> None:
        self.n_bytes = 0
        reset = PeakWatch._reset

        def noting(watch: PeakWatch) -> bool:
            self.look()
            return reset(watch)

        PeakWatch._reset = noting  # type: ignore[method-assign]

    def look(self) -> None:
        status = numbers_by_name(ROOT / "proc" / "self" / "status")
        self.n_bytes = max(self.n_bytes, (status["VmHWM"] - status["RssFile"]) * 1024)


def made(name: str) -> tuple[Any, Any, int]:
    """Return a compiled model, a stream of its batches and their size."""
    import keras
    import numpy as np

    import anybatch as ab

    keras.utils.set_random_seed(1)
    model, inputs, batch = FAMILIES[name]()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rows = batch * UPDATES
    labels = np.random.default_rng(1).integers(0, 10, rows)
    return model, ab.from_arrays((inputs(rows), labels)).shuffle(seed=1).batch(batch), batch


def needed(name: str) -> dict[str, Any]:
    """Return what the whole batch takes beyond what is held before, and small parts if that is known."""
    import anybatch as ab

    model, data, batch = made(name)
    before = held().counted_bytes
    plan: Any = ab.plan(model, data, memory=PLENTY)
    smaller = [way.predicted_peak_bytes - before for way in plan.alternatives if " parts of " in way.name]
    whole = plan.predicted_peak_bytes - before
    return {"batch": batch, "whole_bytes": whole, "parts_bytes": smaller[-1] if smaller else None}


def least(name: str, megabytes: int) -> dict[str, Any]:
    """Return the least that is not refused where gradients grow with the batch, however small its parts."""
    import anybatch as ab

    model, data, _ = made(name)
    before = held().counted_bytes
    allowed = before + megabytes * MB
    try:
        ab.plan(model, data, memory=allowed)
    except ab.AnybatchError as refused:
        allowed = int(refused.needed_bytes)  # type: ignore[attr-defined]
    return {"parts_bytes": allowed + KEPT - before}


def planned_and_trained(name: str, megabytes: int) -> dict[str, Any]:
    """Return what was predicted and what was seen, after planning twice and training three times."""
    import anybatch as ab
    from anybatch.train import probe

    model, data, _ = made(name)
    highest, limit = Highest(), held().counted_bytes + megabytes * MB
    probes = _counted(probe.Prober)
    plan, first_seconds = timed(lambda: ab.plan(model, data, memory=limit))
    _, second_seconds = timed(lambda: ab.plan(model, data, memory=limit))
    peaks, events = [], 0
    for _ in range(RUNS):
        with PeakWatch() as watch:
            history = ab.fit(model, data, memory=limit, verbose=0)
        peaks.append(watch.peak_bytes)
        events += len(history.events)
    highest.look()
    return {
        "family": name,
        "limit": limit,
        "parts": plan.parts,
        "predicted": plan.predicted_peak_bytes,
        "measured": median(peaks),
        "highest": highest.n_bytes,
        "probes": len(probes),
        "events": events,
        "first_seconds": first_seconds,
        "second_seconds": second_seconds,
        "accounted": sum(use.n_bytes for use in plan.uses),
    }


def _counted(prober: Any) -> list[int]:
    """Return a list that grows with every probe, but not with what only warms up."""
    taken, seen = prober._taken, []

    def counting(self: Any, rows: int, parts: int) -> Any:
        if rows > FIRST_ROWS:
            seen.append(rows)
        return taken(self, rows, parts)

    prober._taken = counting
    return seen


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return run(), time.perf_counter() - start


def all_sizes(name: str, megabytes: int) -> dict[str, Any]:
    """Return samples per second of the chosen part, and of every other one that keeps the limit.

    Three times: an LSTM's whole batch kept it one time and not the next (400 of 392 MiB). Of many, the
    fastest owes something to chance: so it is measured again beside the chosen one.
    """
    import anybatch as ab
    from anybatch.train.split import ladder

    model, data, batch = made(name)
    limit = held().counted_bytes + megabytes * MB
    plan = ab.plan(model, data, memory=limit)
    chosen = plan.micro_batch_size or batch
    tried = [size for size in ladder(batch) if size >= chosen / 32]
    sizes = [size for size in tried if all(_peak(model, data, size) <= limit for _ in range(RUNS))]
    found: dict[int, list[float]] = {size: [] for size in {*sizes, chosen}}
    for _ in range(RUNS):
        for size, rates in found.items():
            rates.append(_samples_per_second(model, data, batch, size))
    rates = {size: max(rates) for size, rates in found.items()}
    fastest = max(rates, key=lambda size: rates[size])
    again: dict[int, list[float]] = {chosen: [], fastest: []}
    end = time.perf_counter() + DUEL_SECONDS
    # in turns as short as can be, so that a slow second of the machine meets both
    while time.perf_counter() < end:
        for size, duel in again.items():
            duel.append(UPDATES * batch / timed(lambda: _train(model, data, size))[1])  # noqa: B023
    # by the best rounds and by the usual ones: neither is to tell what the other does not
    share = min(measure(again[chosen]) / measure(again[fastest]) for measure in (max, median))
    return {"family": name, "chosen": chosen, "fastest": fastest, "rates": rates, "share": share}


def _peak(model: Any, data: Any, part: int) -> int:
    with PeakWatch() as watch:
        _train(model, data, part)
    give_back_freed()
    return watch.peak_bytes


def _samples_per_second(model: Any, data: Any, batch: int, part: int) -> float:
    _train(model, data, part)
    taken, end = list[float](), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        taken.append(timed(lambda: _train(model, data, part))[1])
    # the best: what else runs on a machine makes all of it slower, by a third for seconds
    return UPDATES * batch / min(taken)


def _train(model: Any, data: Any, part: int) -> None:
    import anybatch as ab

    ab.fit(model, data, micro_batch_size=part, verbose=0)


def main(name: str, megabytes: str = "", what: str = "") -> dict[str, Any]:
    if not megabytes:
        return needed(name)
    return {"": planned_and_trained, "least": least, "sizes": all_sizes}[what](name, int(megabytes))


if __name__ == "__main__":
    json.dump(main(*sys.argv[1:]), sys.stdout)
