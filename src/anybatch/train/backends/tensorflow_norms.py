"""Batch normalisation in parts: normalise by part, and commit the statistics of the whole batch once."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf


def pooled_layers(model: Any) -> list[Any]:
    """Return the layers whose moving statistics a training step moves and that can be pooled."""
    return [
        layer
        for layer in model._flatten_layers()  # noqa: SLF001
        if isinstance(layer, keras.layers.BatchNormalization) and layer.trainable and not _renormalises(layer)
    ]


def _renormalises(layer: Any) -> bool:
    return bool(getattr(layer, "renorm", False))


class Moments:
    """Collects every call's mean and variance while a part is traced, and keeps the moving averages still."""

    def __init__(self, model: Any) -> None:
        self._layers = pooled_layers(model)
        self._seen: list[tuple[Any, Any, Any]] = []
        self._open = True

    @contextmanager
    def watched(self) -> Iterator["Moments"]:
        """Watch the layers; a momentum of one makes them assign what was there."""
        kept = [(layer, layer.momentum, layer._moments) for layer in self._layers]  # noqa: SLF001
        for layer, _, moments in kept:
            layer.momentum = 1.0
            layer._moments = self._watching(layer, moments)  # noqa: SLF001
        try:
            yield self
        finally:
            for layer, momentum, _ in kept:
                layer.momentum = momentum
                del layer._moments  # noqa: SLF001

    def close(self) -> None:
        """Stop collecting: a rematerialised layer is called once more on the way back."""
        self._open = False

    def _watching(self, layer: Any, moments: Any) -> Any:
        def watching(inputs: Any, mask: Any) -> tuple[Any, Any]:
            mean, variance = moments(inputs, mask)
            if self._open:
                rows = tf.shape(inputs)[0] if mask is None else tf.math.count_nonzero(mask)
                self._seen.append((layer, (mean, variance), rows))
            return mean, variance

        return watching

    def layers(self) -> list[Any]:
        """Return the layers in the order of their calls."""
        return [layer for layer, _, _ in self._seen]

    def sums(self) -> list[tuple[Any, Any, Any]]:
        """Return of every call the rows, and row-weighted mean and mean square: they add up over parts."""
        return [_sums(mean, variance, rows) for _, (mean, variance), rows in self._seen]


def _sums(mean: Any, variance: Any, rows: Any) -> tuple[Any, Any, Any]:
    # in double precision: the variance comes out of a difference
    mean, variance, rows = (tf.cast(value, tf.float64) for value in (mean, variance, rows))
    return rows, rows * mean, rows * (variance + mean * mean)


def commit(layer: Any, sums: tuple[Any, Any, Any]) -> None:
    """Move a layer's averages once, by the statistics of all parts together."""
    rows, means, squares = sums
    mean = tf.math.divide_no_nan(means, rows)
    variance = tf.math.divide_no_nan(squares, rows) - mean * mean
    for variable, value in ((layer.moving_mean, mean), (layer.moving_variance, variance)):
        now = tf.cast(variable.value, tf.float64)
        variable.assign(tf.cast(now * layer.momentum + value * (1.0 - layer.momentum), variable.dtype))
