"""The gradients of a loss function that somebody wrote, part by part."""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, ref

import keras
import tensorflow as tf

from anybatch.train.backends.tensorflow_gradients import Gradients, Sums
from anybatch.train.backends.tensorflow_traced import Traced

_MADE: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""Traces and sums of loss functions, by variables, so that a loop traces once; gone with the function."""


class LossParts:
    """Adds up the gradients and the loss of parts; `share`: 1 for a sum, the part of the rows for a mean."""

    def __init__(self, loss: Callable[..., Any], variables: list[Any]) -> None:
        plain = [one.value if isinstance(one, keras.Variable) else one for one in variables]
        self._run, self._sums = _made(loss, plain)
        self._first: Gradients | None = None
        self._total: Any = None

    def add(self, part: Any, share: float) -> None:
        """Add one part."""
        gradients, loss = self._run(part, tf.constant(share, tf.float64))
        if self._first is None:
            self._sums.start(gradients)
            self._first, self._total = gradients, loss
        else:
            self._sums.add(gradients)
            self._total = self._total + loss

    def result(self) -> tuple[Gradients, Any]:
        """Return the gradients, one per variable, and the loss of all parts together."""
        if self._first is None:
            raise ValueError("a batch without rows has no gradients; give at least one")
        return self._sums.total(self._first), self._total


def _made(loss: Callable[..., Any], variables: list[Any]) -> tuple[Traced, Sums]:
    known = _MADE.setdefault(loss, {})
    key = tuple(id(variable) for variable in variables)
    if key not in known:
        known[key] = (Traced(_step(ref(loss), variables)), Sums())
    return known[key]  # type: ignore[no-any-return]


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
