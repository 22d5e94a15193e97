"""Numbers that users pass."""

from operator import index
from typing import Any


def whole_number(number: Any, what: str, least: int = 0) -> int:
    """Return a whole number from `least` on, or say what it is instead."""
    try:
        value = index(number)
    except TypeError:
        value = least - 1
    if value < least or isinstance(number, bool):
        raise ValueError(f"{what} is {number!r}; it is a whole number from {least} on")
    return value
