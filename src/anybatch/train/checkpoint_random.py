"""The random generators of Python and NumPy, which a user's functions may draw from."""

import random
from typing import Any

import numpy as np

from anybatch.handover import Json


def random_state() -> Json:
    """Return where both global generators stand.

    >>> state = random_state()
    >>> drawn = random.random(), np.random.rand()
    >>> restore_random(state)
    >>> drawn == (random.random(), np.random.rand())
    True
    """
    version, words, gauss = random.getstate()
    legacy: dict[str, Any] = np.random.get_state(legacy=False)  # noqa: NPY002
    state = dict(legacy["state"], key=legacy["state"]["key"].tolist())
    return {"python": [version, list(words), gauss], "numpy": {**legacy, "state": state}}


def restore_random(told: Json) -> None:
    """Let both generators go on from there."""
    version, words, gauss = told["python"]
    random.setstate((version, tuple(words), gauss))
    state = dict(told["numpy"]["state"], key=np.array(told["numpy"]["state"]["key"], np.uint32))
    np.random.set_state({**told["numpy"], "state": state})  # noqa: NPY002
