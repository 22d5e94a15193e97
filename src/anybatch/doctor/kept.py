"""A model as it was: what measuring moves is put back."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def values_of(model: Any) -> list[Any]:
    """Return a copy of every variable of a model: weights, moving statistics, and seeds, which are none."""
    return [one.numpy().copy() for one in model.variables]


def put_back(model: Any, values: list[Any]) -> None:
    """Give a model, or another one of the same make, the values that its variables had."""
    for one, value in zip(model.variables, values, strict=True):
        one.assign(value)


@contextmanager
def kept(model: Any) -> Iterator[None]:
    """Leave a model's variables as they are, whatever is done to it meanwhile."""
    before = values_of(model)
    try:
        yield
    finally:
        put_back(model, before)
