"""Turn what the native decoder has filled into the columns of a batch, without copying."""

from collections.abc import Callable
from collections.abc import Sequence as Several
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anybatch.errors import FeatureError
from anybatch.records.columns import BytesColumn, Column, Offsets, PaddedColumn, RaggedColumn
from anybatch.records.dtypes import BYTES
from anybatch.records.features import Bytes, Feature, Image, Numbers, Padded, Ragged, Raw, Sequence

NativeColumn: TypeAlias = tuple[Any, Several[Any]]
"""A buffer of values, then buffers of int64 offsets, outermost first."""

Assembler: TypeAlias = Callable[[int, NativeColumn], Column]
"""From a number of rows and what the decoder has filled to a column."""


def assemble(feature: Feature, rows: int, column: NativeColumn, *, name: str = "") -> Column:
    """Return one column of a batch; `name` is what an error calls it. Only `Padded` copies."""
    values, offsets = column
    match feature:
        case Numbers() | Raw() | Image():
            return np.frombuffer(values, feature.dtype).reshape(rows, *feature.shape)
        case Bytes():
            return BytesColumn(np.frombuffer(values, np.uint8), int64s(offsets[0]), feature.shape)
        case Ragged():
            return RaggedColumn(_items(feature.dtype, (), column), int64s(offsets[0]))
        case Sequence():
            steps = int64s(offsets[0])
            return RaggedColumn(assemble(feature.feature, int(steps[-1]), (values, offsets[1:])), steps)
        case Padded():
            return _lists_to_pad(feature, column, name).as_array()
    raise TypeError(f"no column is made from {type(feature).__name__}")


def assembler(feature: Feature, name: str) -> Assembler:
    """Return what makes columns of one feature, with all that is the same for every batch settled."""
    if isinstance(feature, Padded):
        # how long rows become is not known before it is known which of them make a batch
        return lambda _rows, column: _lists_to_pad(feature, column, name)
    if not isinstance(feature, Numbers | Raw | Image):
        return lambda rows, column: assemble(feature, rows, column, name=name)
    dtype, shape = np.dtype(feature.dtype), feature.shape
    if not shape:
        return lambda _rows, column: np.frombuffer(column[0], dtype)
    return lambda rows, column: np.frombuffer(column[0], dtype).reshape(rows, *shape)


def int64s(buffer: Any) -> Offsets:
    """Return a native buffer of numbers, without copying."""
    return np.frombuffer(buffer, np.int64)


def _lists_to_pad(feature: Padded, column: NativeColumn, name: str) -> PaddedColumn:
    starts = _starts_of_items(feature, int64s(column[1][0]), name)
    return PaddedColumn(_items(feature.dtype, feature.shape, column), starts, feature.default)


def _items(dtype: str, shape: tuple[int, ...], column: NativeColumn) -> NDArray[Any] | BytesColumn:
    values, offsets = column
    if dtype == BYTES:
        return BytesColumn(np.frombuffer(values, np.uint8), int64s(offsets[1]), shape)
    return np.frombuffer(values, dtype).reshape(-1, *shape)


def _starts_of_items(feature: Padded, offsets: Offsets, name: str) -> Offsets:
    each = prod(feature.shape)
    cut = np.flatnonzero(np.diff(offsets) % each)
    if cut.size:
        at = int(cut[0])
        held = int(offsets[at + 1] - offsets[at])
        problem = (
            f"holds {held:,} values in row {at} of the batch; {feature.shape} asks for multiples of {each:,}"
        )
        raise FeatureError(name, "", -1, problem)
    return offsets // each
