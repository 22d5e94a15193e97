"""A step that is traced once, for batches of any number of rows, as Keras does it."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from anybatch.train.exhaustion import is_exhaustion


class ForAnyRows:
    """A `tf.function` whose first trace takes any number of rows.

    Left to itself, TensorFlow traces for the rows of the first batch and again when another number comes:
    a short last batch, a part of another size. Tracing is most of what planning a small model takes.
    """

    def __init__(self, step: Callable[..., Any], **options: Any) -> None:
        self._for_each = tf.function(step, autograph=False, **options)
        self._function = tf.function(step, autograph=False, reduce_retracing=True, **options)
        self._is_traced = False

    def __call__(self, batch: Any, *more: Any) -> Any:
        if not self._is_traced:
            self._trace(batch, more)
        return self._function(batch, *more)

    def _trace(self, batch: Any, more: tuple[Any, ...]) -> None:
        self._is_traced = True
        try:
            self._function.get_concrete_function(tf.nest.map_structure(_any_rows, batch), *more)
        except Exception as error:
            if is_exhaustion(error):
                raise
            # a model may want to know how many rows there are: then it is traced for each number of them
            self._function = self._for_each


def _any_rows(leaf: Any) -> Any:
    """Return what describes a leaf, but for its number of rows."""
    if leaf is None:
        return None
    spec = tf.type_spec_from_value(leaf)
    if spec.shape.rank in {None, 0}:
        return spec
    shape = [None, *spec.shape[1:]]
    if isinstance(spec, tf.RaggedTensorSpec):
        return tf.RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank, spec.row_splits_dtype)
    return type(spec)(shape, spec.dtype) if isinstance(spec, tf.TensorSpec | tf.SparseTensorSpec) else spec
