"""Room that is taken before the first weight changes: an update that has begun must be able to end."""

from typing import Any

import tensorflow as tf

from anybatch.train.backends.tensorflow_state import n_bytes

ROOM = 2
"""So many times the bytes of the weights, beside those of weights and slots, an update may take.

Measured over all optimizers of Keras, clipped, averaged and scaled: centered RMSprop takes exactly that.
"""

ROW = 4096
"""Words in a row of that room: one dimension alone would end at 16 GiB."""

ROOM_FOR_METRICS = 8
"""How many copies of the predictions metrics may take."""


def room_for(model: Any, kept_bytes: int, seen: Any) -> list[Any]:
    """Take and give back more than update and metrics need; if that fails, nothing was touched.

    `kept_bytes`: weights and slots; `seen`: the predictions that metrics are made of.
    """
    if model.jit_compile:
        # compiled, an update is written back only when all of it is there
        return []
    values = sum(tf.size(leaf, tf.int64) for leaf in leaves_of(seen))
    weights = sum(n_bytes(variable) for variable in model.trainable_variables)
    words = (kept_bytes + ROOM * weights) // 8 + values * ROOM_FOR_METRICS
    shape = [tf.cast(words // ROW + 1, tf.int32), ROW]
    return [tf.raw_ops.Empty(shape=shape, dtype=tf.float64, init=False)]


def leaves_of(structure: Any) -> list[Any]:
    """Return all tensors of a structure, those inside of composites too."""
    leaves = tf.nest.flatten(structure, expand_composites=True)
    return [leaf for leaf in leaves if leaf is not None]
