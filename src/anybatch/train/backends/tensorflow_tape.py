"""The gradients of a loss function that somebody wrote, part by part."""

from collections.abc import Callable
from typing import Any
from weakref import WeakMethod, finalize, ref

import keras
import tensorflow as tf

from anybatch.train.backends.tensorflow_gradients import Gradients, Sums
from anybatch.train.backends.tensorflow_traced import Traced

_MADE: dict[int, dict[Any, tuple[Traced, Sums]]] = {}
"""Traces and sums, so that a loop traces once, by whom a loss function belongs to: they are gone with it."""


class LossParts:
    """Adds up the gradients and the loss of parts; `share`: 1 for a sum, the part of the rows for a mean."""

    def __init__(self, loss: Callable[..., Any], variables: list[Any]) -> None:
        plain = [one.value if isinstance(one, keras.Variable) else one for one in variables]
        self._run, self._sums = _made(loss, plain)
        self._total: Any = None

    def add(self, part: Any, share: float) -> None:
        """Add one part."""
        gradients, loss = self._run(part, tf.constant(share, tf.float64))
        if self._total is None:
            self._sums.start(gradients)
            self._total = loss
        else:
            self._sums.add(gradients)
            self._total = self._total + loss

    def result(self) -> tuple[Gradients, Any]:
        """Return the gradients, one per variable, and the loss of all parts together."""
        if self._total is None:
            raise ValueError("a batch without rows has no gradients; give at least one")
        return self._sums.total(), self._total


def _made(loss: Any, variables: list[Any]) -> tuple[Traced, Sums]:
    weak = _weak(loss)
    owner, function = (loss.__self__, ref(loss.__func__)) if isinstance(weak, WeakMethod) else (loss, None)
    known = _made_for(owner)
    key = (function, *(id(variable) for variable in variables))
    if key not in known:
        known[key] = (Traced(_step(weak, variables)), Sums())
    return known[key]


def _weak(loss: Callable[..., Any]) -> Callable[[], Any]:
    """Return a weak reference to a loss function; that to a method lives as long as the method's owner.

    `owner.method` is a new object whenever somebody writes it.
    """
    try:
        return WeakMethod(loss)
    except TypeError:
        # no method, or one of an object to which nothing can refer weakly
        return ref(loss)


def _made_for(owner: Any) -> dict[Any, tuple[Traced, Sums]]:
    """Return what was made for the loss functions of an object, by its identity: it may be unhashable."""
    if id(owner) not in _MADE:
        finalize(owner, _MADE.pop, id(owner)).atexit = False
        _MADE[id(owner)] = {}
    return _MADE[id(owner)]


def _step(loss: Callable[[], Any], variables: list[Any]) -> Callable[..., Any]:
    """Return what is traced; it refers to the loss function weakly, or that would be kept for ever."""

    def step(part: Any, share: Any) -> tuple[Gradients, Any]:
        with tf.GradientTape() as tape:
            value = tf.convert_to_tensor(loss()(*part))
            if value.shape.rank:
                raise ValueError(
                    f"the loss function returned shape {value.shape}; reduce it to one number, "
                    "by the mean or the sum over samples"
                )
            value *= tf.cast(share, value.dtype)
        return tape.gradient(value, variables), value

    return step
