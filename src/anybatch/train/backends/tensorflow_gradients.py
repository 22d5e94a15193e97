"""Gradients that are summed over parts: dense ones in place, slices of embeddings one behind the other."""

from typing import Any

import tensorflow as tf

from anybatch.train.exhaustion import in_one_line, is_exhaustion
from anybatch.train.refusals import UpdateCutShort

Gradients = list[Any]
"""One per variable: a tensor, `IndexedSlices`, or None where the loss does not depend on it."""


class Sums:
    """The sum of the gradients of all parts so far, of one group of loss terms.

    Dense sums live in variables, added to in place: nothing is allocated once the first part is through.
    Slices are kept as they come and never merged: Keras squares and clips them before it merges rows. Of
    `highest` variables (by their place) the highest gradient counts: those that it overwrites, as in float8.
    """

    def __init__(self, highest: frozenset[int] = frozenset()) -> None:
        self._highest = highest
        self._chosen: list[bool] = []
        self._dense: list[Any] = []
        self._slices: list[list[Any]] = []

    def start(self, gradients: Gradients) -> None:
        """Begin with the gradients of a first part."""
        dense = _dense(gradients)
        self._chosen = [n in self._highest for n, one in enumerate(gradients) if _is_dense(one)]
        if self._dense:
            for variable, gradient in zip(self._dense, dense, strict=True):
                variable.assign(gradient, read_value=False)
        else:
            self._dense = [tf.Variable(gradient, trainable=False) for gradient in dense]
        self._slices = [[gradient] for gradient in gradients if isinstance(gradient, tf.IndexedSlices)]

    def add(self, gradients: Gradients, *, begun: bool = False) -> None:
        """Add those of one more part; `begun`: other sums have it already.

        Should memory run out between two of them after all, the part must not be added once more.
        """
        for at, gradient in enumerate(_dense(gradients)):
            try:
                self._add_to(at, gradient)
            except Exception as error:
                if (at or begun) and is_exhaustion(error):
                    raise UpdateCutShort(in_one_line(error)) from None
                raise
        slices = [gradient for gradient in gradients if isinstance(gradient, tf.IndexedSlices)]
        for kept, more in zip(self._slices, slices, strict=True):
            kept.append(more)

    def _add_to(self, at: int, gradient: Any) -> None:
        variable = self._dense[at]
        if self._chosen[at]:
            variable.assign(tf.maximum(variable, gradient), read_value=False)
        else:
            variable.assign_add(gradient, read_value=False)

    def total(self, like: Gradients) -> Gradients:
        """Return the sums in the shape of one part's gradients."""
        dense, slices = iter(self._dense), iter(self._slices)
        return [_summed(gradient, dense, slices) for gradient in like]

    def forget(self) -> None:
        """Let go of the slices; the dense sums are used again."""
        self._slices = []


def _dense(gradients: Gradients) -> list[Any]:
    return [one for one in gradients if _is_dense(one)]


def _is_dense(gradient: Any) -> bool:
    return gradient is not None and not isinstance(gradient, tf.IndexedSlices)


def _summed(like: Any, dense: Any, slices: Any) -> Any:
    if like is None:
        return None
    return concatenated(next(slices)) if isinstance(like, tf.IndexedSlices) else next(dense).value()


def concatenated(parts: list[Any]) -> Any:
    """Return slices one behind the other."""
    return parts[0] if len(parts) == 1 else tf.IndexedSlices(*_end_to_end(parts), parts[0].dense_shape)


def _end_to_end(parts: list[Any]) -> tuple[Any, Any]:
    indices = tf.concat([tf.cast(part.indices, tf.int64) for part in parts], 0)
    return tf.concat([part.values for part in parts], 0), indices


def scaled(gradient: Any, factor: Any) -> Any:
    """Return a gradient times a number."""
    if gradient is None:
        return None
    if isinstance(gradient, tf.IndexedSlices):
        factor = tf.cast(factor, gradient.values.dtype)
        return tf.IndexedSlices(gradient.values * factor, gradient.indices, gradient.dense_shape)
    return gradient * tf.cast(factor, gradient.dtype)


def added(one: Any, other: Any) -> Any:
    """Return the sum of two gradients as TensorFlow does: slices beside a dense one are merged."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, tf.IndexedSlices) and isinstance(other, tf.IndexedSlices):
        return _of_lookups(one, other)
    return tf.convert_to_tensor(one) + tf.convert_to_tensor(other)


def _of_lookups(one: Any, other: Any) -> Any:
    """Return slices of two groups of terms as one backward pass would make them.

    Each lookup gives one row, the sum of what all terms ask of it: an optimizer squares the sum.
    """
    if not one.indices.shape.is_compatible_with(other.indices.shape):
        return concatenated([one, other])
    same = tf.cond(
        tf.equal(tf.size(one.indices), tf.size(other.indices)),
        lambda: tf.reduce_all(tf.equal(tf.cast(one.indices, tf.int64), tf.cast(other.indices, tf.int64))),
        lambda: False,
    )
    values, indices = tf.cond(
        same,
        lambda: (one.values + other.values, tf.cast(one.indices, tf.int64)),
        lambda: _end_to_end([one, other]),
    )
    return tf.IndexedSlices(values, indices, one.dense_shape)
