"""How many bytes each record takes, whatever it was read with and whoever holds it."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anybatch.records import BytesColumn, RaggedColumn
from anybatch.stream.structure import Loose, Structure, leaves, row_count, row_shape

Sizes = NDArray[np.int64]

_PLACE_BYTES = 8
"""What it takes to say where a value of any length begins."""


def row_sizes(value: Structure) -> Sizes:
    """Return the bytes of every row, at least one: equal for equal records, be they columns or loose."""
    if isinstance(value, Loose):
        sizes = np.array([sum(map(_value_bytes, leaves(one))) for one in value], np.int64)
    else:
        sizes = np.zeros(row_count(value), np.int64)
        for column in leaves(value):
            sizes += _of_column(column)
    return np.maximum(sizes, 1)


def _value_bytes(value: Any) -> int:
    if isinstance(value, RaggedColumn):
        return _PLACE_BYTES + int(_inner(value).sum())
    if isinstance(value, bytes | str):
        return _PLACE_BYTES + len(value.encode() if isinstance(value, str) else value)
    return int(_of_column(np.asarray(value)[None])[0])


def _of_column(column: Any) -> Any:
    # arrays may be lists that are equally long by chance
    one_each = isinstance(column, np.ndarray | BytesColumn) and not row_shape(column)
    return _inner(column) + _PLACE_BYTES * (not one_each)


def _inner(column: Any) -> Sizes:
    """Return the bytes of the values in every row."""
    if isinstance(column, RaggedColumn):
        # lists in lists have places of their own
        values = (
            _of_column(column.values) if isinstance(column.values, RaggedColumn) else _inner(column.values)
        )
        return _between(values, column.offsets)
    if isinstance(column, BytesColumn):
        each = prod(column.shape)
        return np.asarray(np.diff(column.offsets[::each])) + _PLACE_BYTES * each
    if column.dtype.hasobject or column.dtype.kind in "SU":
        return np.array([_text_bytes(row) for row in column], np.int64)
    return np.full(len(column), prod(column.shape[1:]) * column.dtype.itemsize, np.int64)


def _between(sizes: Sizes, offsets: NDArray[np.int64]) -> Sizes:
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return np.asarray(np.diff(ends[offsets]))


def _text_bytes(row: Any) -> int:
    """Return the same for text and objects: an array of text is as wide as the longest beside it."""
    values = row.flat if isinstance(row, np.ndarray) else [row]
    return sum(_PLACE_BYTES + (len(one) if isinstance(one, bytes | str) else 0) for one in values)
