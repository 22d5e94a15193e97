"""Columns on their way into TensorFlow: without a copy where memory allows it."""

from typing import Any

import numpy as np
import tensorflow as tf

from anybatch.stream.interop.tensorflow import tensor


def tensors(columns: Any) -> Any:
    """Return the same structure with a tensor for every array; aligned memory is taken as it lies."""
    return tf.nest.map_structure(_tensor, columns)


def _tensor(leaf: Any) -> Any:
    if leaf is None or tf.is_tensor(leaf) or isinstance(leaf, tf.RaggedTensor | tf.SparseTensor):
        return leaf
    return tensor(leaf)


def row_count(columns: Any) -> int:
    """Return how many rows every column has."""
    leaves = [leaf for leaf in tf.nest.flatten(columns) if leaf is not None]
    if not leaves:
        return 0
    shape = leaves[0].shape
    return int(tf.shape(leaves[0])[0]) if shape[0] is None else int(shape[0])


def rows_between(columns: Any, start: int, stop: int) -> Any:
    """Return the rows `start..stop` of every column."""
    return tf.nest.map_structure(lambda leaf: _between(leaf, start, stop), columns)


def _between(leaf: Any, start: int, stop: int) -> Any:
    if leaf is None:
        return None
    if isinstance(leaf, tf.SparseTensor):
        begin = [start, *[0] * (len(leaf.shape) - 1)]
        return tf.sparse.slice(leaf, begin, [stop - start, *leaf.shape[1:]])
    return leaf[start:stop]


def joined(outputs: list[Any]) -> Any:
    """Return structures of tensors one behind the other, as arrays; of none, nothing."""
    if not outputs:
        return None
    return tf.nest.map_structure(lambda *leaves: _joined(leaves), *outputs)


def _joined(leaves: tuple[Any, ...]) -> Any:
    if leaves[0] is None:
        return None
    if isinstance(leaves[0], tf.SparseTensor):
        return tf.sparse.concat(0, list(leaves)) if len(leaves) > 1 else leaves[0]
    if isinstance(leaves[0], tf.RaggedTensor) or _differ(leaves):
        return tf.concat(
            [tf.RaggedTensor.from_tensor(leaf) if tf.is_tensor(leaf) else leaf for leaf in leaves], 0
        )
    arrays = [np.asarray(leaf) for leaf in leaves]
    if len(arrays) == 1:
        return arrays[0]
    # one number for each batch: as Keras gives them
    return np.concatenate(arrays) if arrays[0].ndim else np.stack(arrays)


def _differ(leaves: tuple[Any, ...]) -> bool:
    return len({tuple(leaf.shape[1:]) for leaf in leaves}) > 1
