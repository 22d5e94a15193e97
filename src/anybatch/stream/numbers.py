"""Numbers that users pass."""

from collections.abc import Iterable
from math import isfinite
from operator import index
from typing import Any

_LARGEST = 2**63 - 1


def whole_number(number: Any, what: str, least: int = 0) -> int:
    """Return a whole number from `least` on, or say what it is instead."""
    try:
        value = index(number)
    except TypeError:
        value = least - 1
    if value < least or isinstance(number, bool):
        raise ValueError(f"{what} is {number!r}; it is a whole number from {least} on")
    if value > _LARGEST:
        raise ValueError(f"{what} is {number!r}; the largest whole number here is 2**63 - 1")
    return value


def seed_number(seed: Any) -> int:
    """Return a seed: any whole number."""
    try:
        return index(seed)
    except TypeError:
        raise ValueError(f"the seed is {seed!r}; it is a whole number") from None


def shares(weights: Iterable[Any], count: int) -> list[float]:
    """Return so many weights, none below 0 and not all of them 0."""
    given = list(weights)
    try:
        values = [float(weight) for weight in given]
    except (TypeError, ValueError):
        values = []
    if len(values) != count or not all(isfinite(value) and value >= 0 for value in values) or not any(values):
        raise ValueError(f"mix takes one weight from 0 on per stream; got {given!r} for {count} streams")
    return values
