"""Randomness that belongs to a record, whoever reads it, wherever and whenever."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anybatch.stream.chunk import Epochs

_ODD = np.uint64(0x9E3779B97F4A7C15)


def seeds_of(seed: int, epoch: Epochs, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return one seed per record: equal for equal arguments, unrelated otherwise."""
    with np.errstate(over="ignore"):
        key = _mixed(
            _mixed(np.array([seed & (2**64 - 1)], np.uint64)) + np.asarray(epoch).astype(np.uint64) * _ODD
        )
        return _mixed(_mixed(numbers.astype(np.uint64) * _ODD + key) ^ key)


def generator(seed: Any) -> np.random.Generator:
    """Return NumPy's generator for a seed."""
    return np.random.Generator(np.random.Philox(key=int(seed)))


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
