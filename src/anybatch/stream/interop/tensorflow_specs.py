"""What TensorFlow is told about a stream's elements: types, and which dimensions vary."""

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from anybatch.records import BytesColumn, RaggedColumn
from anybatch.stream.batch import Batch
from anybatch.stream.declared import declared, rows_of_every_batch
from anybatch.stream.layout import Dense, Layout, Lists, layout_of, named_leaves
from anybatch.stream.lifted import every_stage
from anybatch.stream.map import Mapped
from anybatch.stream.order import Kept
from anybatch.stream.stage import Operation, Stage
from anybatch.stream.structure import Structure, mapped

Spec: TypeAlias = Any
"""A `tf.TensorSpec` or a `tf.RaggedTensorSpec`."""

Elements: TypeAlias = Callable[[Stage], Iterator[Structure]]
"""The elements of a stage, as columns."""

_PEEKED = 3
_PEEKED_SINGLY = 16
_USUAL_LENGTH = 32


def specs_found(stage: Stage, elements: Elements) -> Structure:
    """Return the specs of columns: by the features, or by the first elements where functions decide."""
    layouts, rows = declared(stage), rows_of_every_batch(stage)
    if layouts is not None:
        return mapped(lambda layout: _spec(layout, rows), layouts)
    peeked = _peeked(stage, elements, _PEEKED, lambda leaf: _observed(leaf, rows, rows))
    if not peeked:
        raise ValueError("the stream has no elements to tell shapes from; to_tf(element_spec=...) says them")
    whole = any(isinstance(one, Mapped) and one.parent.batched for one in every_stage(stage))
    return mapped(
        lambda *specs: _common(specs, by_batch=whole), *peeked, *_peeked_singly(stage, elements, rows)
    )


def specs_given(element_spec: Structure, stage: Stage) -> Structure:
    """Return the specs of columns that a user has said."""
    return element_spec if stage.batched else mapped(_of_rows, element_spec)


def bytes_of_a_batch(specs: Structure, stage: Stage) -> int:
    """Return about how large a batch is."""
    rows = max((one.size for one in every_stage(stage) if isinstance(one, Batch)), default=1)
    return sum(_guessed_bytes(spec, rows) for _, spec in named_leaves(specs))


def _peeked(stage: Stage, elements: Elements, count: int, observe: Callable[[Any], Spec]) -> list[Structure]:
    with closing(elements(stage)) as first:  # type: ignore[type-var]
        return [mapped(observe, one) for one in itertools.islice(first, count)]


def _peeked_singly(stage: Stage, elements: Elements, rows: int | None) -> list[Structure]:
    """Return the specs of batches of one record, which show what depends on who shares a batch."""
    single = _in_ones(stage)
    if single is None:
        return []
    try:
        return _peeked(single, elements, _PEEKED_SINGLY, lambda leaf: _observed(leaf, rows, 1))
    except Exception:  # noqa: BLE001 - a function may well need more than one record, and then gets them
        return []


def _in_ones(stage: Stage) -> Stage | None:
    """Return a stage with its batches cut into single records."""
    if isinstance(stage, Batch):
        return replace(stage, size=1, drop_remainder=False)
    if isinstance(stage, Kept) or not isinstance(stage, Operation):
        # what a cache holds belongs to its own batches
        return None
    parent = _in_ones(stage.parent)
    return None if parent is None else replace(stage, parent=parent)


def _common(specs: tuple[Spec, ...], *, by_batch: bool) -> Spec:
    """Return one spec for all; records that differ in length are lists, unless a function pads each batch."""
    lists = [spec for spec in specs if isinstance(spec, tf.RaggedTensorSpec)]
    first, *others = lists or specs
    found = first.most_specific_common_supertype(others)
    if found is None:
        raise ValueError(f"the first elements are {first} and {others[0]}, which no tf.data.Dataset can hold")
    shape = found.shape
    if not lists and not by_batch and shape.rank is not None and shape.rank > 1 and shape[1] is None:
        return tf.RaggedTensorSpec(shape, found.dtype, 1, tf.int64)
    return found


def _observed(leaf: Any, rows: int | None, batch: int | None) -> Spec:
    """Return the spec of one column of a batch of `batch` records, where others have `rows`."""
    if isinstance(leaf, BytesColumn | RaggedColumn):
        return _spec(layout_of(leaf, ""), rows if len(leaf) == batch else None)
    array = np.asarray(leaf)
    if not array.ndim:
        return tf.TensorSpec((), _dtype(array.dtype))
    return tf.TensorSpec([rows if array.shape[0] == batch else None, *array.shape[1:]], _dtype(array.dtype))


def _spec(layout: Layout, rows: int | None) -> Spec:
    depth = 0
    while isinstance(layout, Lists):
        layout, depth = layout.values, depth + 1
    dtype = _dtype(layout.dtype) if isinstance(layout, Dense) else tf.string
    if not depth:
        return tf.TensorSpec([rows, *layout.shape], dtype)
    return tf.RaggedTensorSpec([rows, *[None] * depth, *layout.shape], dtype, depth, tf.int64)


def _dtype(dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "OSU":
        return tf.string
    try:
        return tf.as_dtype(dtype)
    except TypeError:
        raise ValueError(f"TensorFlow has no tensors of {dtype}; map it to a type that it has") from None


def _of_rows(spec: Spec) -> Spec:
    """Return the spec of a column with such rows."""
    shape = [None, *spec.shape]
    if isinstance(spec, tf.RaggedTensorSpec):
        return tf.RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank + 1, spec.row_splits_dtype)
    if spec.shape.rank and spec.shape[0] is None:
        return tf.RaggedTensorSpec(shape, spec.dtype, 1, tf.int64)
    return tf.TensorSpec(shape, spec.dtype)


def _guessed_bytes(spec: Spec, rows: int) -> int:
    sizes = [] if not spec.shape.rank else [rows, *spec.shape[1:]]
    each = _USUAL_LENGTH if spec.dtype == tf.string else spec.dtype.size
    return int(each * math.prod(_USUAL_LENGTH if size is None else size for size in sizes))
