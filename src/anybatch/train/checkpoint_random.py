"""The random generators of Python, NumPy and Keras that belong to nobody, and that anybody may draw from."""

import random
import sys
from typing import Any

import numpy as np

from anybatch.handover import Json


def random_state() -> Json:
    """Return where the global generators stand.

    >>> state = random_state()
    >>> drawn = random.random(), np.random.rand()
    >>> restore_random(state)
    >>> drawn == (random.random(), np.random.rand())
    True
    """
    version, words, gauss = random.getstate()
    legacy: dict[str, Any] = np.random.get_state(legacy=False)  # noqa: NPY002
    state = dict(legacy["state"], key=legacy["state"]["key"].tolist())
    seeds = _seeds_of_keras()
    return {
        "python": [version, list(words), gauss],
        "numpy": {**legacy, "state": state},
        "keras": None if seeds is None else np.asarray(seeds.value).tolist(),
    }


def restore_random(told: Json) -> None:
    """Let the generators go on from there."""
    version, words, gauss = told["python"]
    random.setstate((version, tuple(words), gauss))
    state = dict(told["numpy"]["state"], key=np.array(told["numpy"]["state"]["key"], np.uint32))
    np.random.set_state({**told["numpy"], "state": state})  # noqa: NPY002
    seeds, kept = _seeds_of_keras(), told.get("keras")
    if seeds is not None and kept is not None:
        seeds.assign(np.array(kept, seeds.dtype))


def _seeds_of_keras() -> Any:
    """Return the variable behind `keras.random` without a seed; None before somebody has drawn from it."""
    state = sys.modules.get("keras.src.backend.common.global_state")
    generator = None if state is None else state.get_global_attribute("global_seed_generator")
    return None if generator is None else generator.state
