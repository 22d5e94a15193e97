"""Labels and weights as later batches may have them: the first rows may have no padding."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

BY_LABELS = "what it divides by depends on the labels, as with a mask"
BY_WEIGHTS = "unequal sample weights change what it divides by, or do not weigh single samples"

MARKS = (0, -1, np.nan)
"""What stands for a label that does not count."""


def later(given: Any) -> Iterator[tuple[Any, str]]:
    """Yield rows with other labels, then with other weights, and what it means if a loss does not add up."""
    x, y, weights = keras.utils.unpack_x_y_sample_weight(given)
    if y is not None:
        for change in (*(partial(_one_marked, mark=mark) for mark in MARKS), _shortened):
            yield (x, tf.nest.map_structure(change, y), weights), BY_LABELS
    if weights is not None:
        yield (x, y, tf.nest.map_structure(_unequal, weights)), BY_WEIGHTS


def _one_marked(labels: Any, mark: float) -> Any:
    """Return labels of which the second row is marked, and no other: the halves of any rows differ then."""
    if not _can_hold(labels, mark):
        return labels
    rows = _without(np.array(labels), mark)
    rows[1] = mark
    return tf.constant(rows, labels.dtype)


def _shortened(labels: Any) -> Any:
    """Return labels of which every row has fewer than the one before: the rest are zeros, none has none."""
    if not _can_hold(labels, 0) or labels.shape.rank == 1:
        return labels
    rows = _without(np.array(labels), 0)
    flat = rows.reshape(len(rows), -1)
    lengths = flat.shape[1] * np.arange(len(flat), 0, -1) // len(flat)
    flat[np.arange(flat.shape[1]) >= np.maximum(1, lengths)[:, None]] = 0
    return tf.constant(flat.reshape(rows.shape), labels.dtype)


def _can_hold(labels: Any, mark: float) -> bool:
    """Return whether there are rows of numbers, of a kind that such a mark is one of."""
    if not isinstance(labels, tf.Tensor) or not labels.shape.rank or labels.shape[0] < 2:
        return False
    dtype = labels.dtype
    if mark == 0:
        return bool(dtype.is_floating or dtype.is_integer or dtype.is_bool)
    return bool(dtype.is_floating or (mark == -1 and dtype.is_integer and not dtype.is_unsigned))


def _without(values: Any, mark: float) -> Any:
    """Return labels that all count: another one stands where there was a mark, or nothing defined."""
    marked = (values == mark) | ~np.isfinite(values)
    if marked.any() and not marked.all():
        values[marked] = values[~marked].max()
    return values


def _unequal(weights: Any) -> Any:
    """Return a weight for every row that no other row has."""
    if not isinstance(weights, tf.Tensor) or not weights.shape.rank:
        return weights
    by_row = np.arange(1, weights.shape[0] + 1).reshape(-1, *[1] * (weights.shape.rank - 1))
    return tf.cast(np.broadcast_to(by_row, weights.shape), weights.dtype)
