"""Gradients that are summed over parts: dense ones in place, slices of embeddings one behind the other."""

from typing import Any

import tensorflow as tf

from anybatch.train.exhaustion import in_one_line, is_exhaustion
from anybatch.train.refusals import UpdateCutShort

Gradients = list[Any]
"""One per variable: a tensor, `IndexedSlices`, or None where the loss does not depend on it."""


class Sums:
    """The sum of the gradients of all parts so far, of one group of loss terms.

    Dense sums live in variables, added to in place: nothing is allocated once every gradient was seen.
    Slices are kept as they come and never merged: Keras squares and clips them before it merges rows. Of
    `highest` variables (by their place) the highest gradient counts: those that it overwrites, as in float8.
    """

    def __init__(self, highest: frozenset[int] = frozenset()) -> None:
        self._highest = highest
        self._dense: dict[int, Any] = {}
        self._slices: dict[int, list[Any]] = {}
        self._places = 0
        self._begun: set[int] = set()
        """Where a dense sum is that of this batch; untraced, a part need not have every gradient."""

    def start(self, gradients: Gradients) -> None:
        """Begin with the gradients of a first part."""
        self.forget()
        self.add(gradients)

    def add(self, gradients: Gradients, *, begun: bool = False) -> None:
        """Add those of one more part; `begun`: other sums have it already.

        Should memory run out between two of them after all, the part must not be added once more.
        """
        dense = {place: one for place, one in enumerate(gradients) if _is_dense(one)}
        try:
            # these first: they allocate, and can be done again
            for place in dense.keys() - self._begun:
                self._put(place, dense[place])
            for place in dense.keys() & self._begun:
                self._add_to(place, dense[place])
                begun = True
        except Exception as error:
            if begun and is_exhaustion(error):
                raise UpdateCutShort(in_one_line(error)) from None
            raise
        self._begun |= dense.keys()
        self._places = len(gradients)
        for place, gradient in enumerate(gradients):
            if isinstance(gradient, tf.IndexedSlices):
                self._slices.setdefault(place, []).append(gradient)

    def _put(self, place: int, gradient: Any) -> None:
        if place in self._dense:
            self._dense[place].assign(gradient, read_value=False)
        else:
            self._dense[place] = tf.Variable(gradient, trainable=False)

    def _add_to(self, place: int, gradient: Any) -> None:
        variable = self._dense[place]
        if place in self._highest:
            variable.assign(tf.maximum(variable, gradient), read_value=False)
        else:
            variable.assign_add(gradient, read_value=False)

    @property
    def any(self) -> bool:
        """Whether some variable has a gradient in this batch."""
        return bool(self._begun or self._slices)

    def total(self) -> Gradients:
        """Return the sums, one per variable: None where no part has a gradient."""
        return [added(self._dense_at(place), self._slices_at(place)) for place in range(self._places)]

    def _dense_at(self, place: int) -> Any:
        return self._dense[place].value() if place in self._begun else None

    def _slices_at(self, place: int) -> Any:
        return concatenated(self._slices[place]) if place in self._slices else None

    def forget(self) -> None:
        """Let go of the slices; the variables of dense sums are used again."""
        self._slices, self._places = {}, 0
        self._begun.clear()


def _is_dense(gradient: Any) -> bool:
    return gradient is not None and not isinstance(gradient, tf.IndexedSlices)


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
