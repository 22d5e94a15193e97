"""Every array of a training in a file, so that what two processes ended with is compared number by number."""

from pathlib import Path
from typing import Any

import numpy as np


def keep(file: Path, arrays: list[Any]) -> None:
    """Write arrays in their order."""
    with file.open("wb") as out:
        np.savez(out, *(np.asarray(array) for array in arrays))


def kept(file: Path) -> list[Any]:
    with np.load(file) as arrays:
        return [arrays[f"arr_{at}"] for at in range(len(arrays.files))]


def sums(file: Path) -> list[float]:
    """Return of every array the sum of what its numbers are worth: rounding one by one hardly moves it."""
    return [float(np.abs(array).sum()) for array in kept(file)]


def largest_differences(found: Path, expected: Path) -> list[float]:
    """Return of every array the largest difference of any number, relative to the array's largest."""
    return [_difference(one, other) for one, other in zip(kept(found), kept(expected), strict=True)]


def _difference(one: Any, other: Any) -> float:
    assert one.shape == other.shape
    apart = np.abs(one.astype("float64") - other).max(initial=0.0)
    return float(apart / max(np.abs(other).max(initial=0.0), 1e-12))
