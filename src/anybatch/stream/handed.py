"""What the consumer gets: arrays of its own, contiguous and aligned as frameworks want them."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from anybatch.records import (
    ALIGNMENT_BYTES,
    BytesColumn,
    RaggedColumn,
    aligned_copy,
    aligned_empty,
    is_aligned,
)
from anybatch.stream.structure import Loose, Structure, leaves, mapped, record

# smaller rows are put apart all at once; larger ones, which it takes long to copy, one by one when asked for
_SMALL_ROW_BYTES = 16 << 10


def handed_over(value: Structure) -> Structure:
    """Return an element as the consumer may have it; copied is only what does not lie so already."""
    # as often as there are records: what nearly all are comes first
    if type(value) is dict:
        return {name: handed_over(part) for name, part in value.items()}
    if type(value) is tuple:
        return tuple(map(handed_over, value))
    if type(value) is not np.ndarray and isinstance(value, Mapping | tuple):
        # of a kind of the user's own, which it stays unless something has to change
        return value if all(map(_may_go, leaves(value))) else mapped(_own, value)
    return _own(value)


def copied_bytes(value: Structure) -> int:
    """Return how much of an element has to be copied before it can be handed over."""
    return sum(leaf.nbytes for leaf in leaves(value) if not _may_go(leaf))


class Rows:
    """The rows of some columns, handed over one by one."""

    def __init__(self, columns: Structure) -> None:
        loose = isinstance(columns, Loose)
        self._columns = columns if loose else mapped(_apart, columns)
        self._may_go = not loose and all(map(_rows_may_go, leaves(self._columns)))

    def at(self, row: int) -> Any:
        """Return one row."""
        one = record(self._columns, row)
        return one if self._may_go else handed_over(one)


def _may_go(leaf: Any) -> bool:
    if isinstance(leaf, np.ndarray):
        return not leaf.ndim or leaf.dtype.hasobject or is_aligned(leaf)
    if isinstance(leaf, BytesColumn | RaggedColumn):
        return _may_go(leaf.values) and is_aligned(leaf.offsets)
    return True


def _own(leaf: Any) -> Any:
    if _may_go(leaf):
        return leaf
    if isinstance(leaf, BytesColumn):
        return BytesColumn(_own(leaf.values), _own(leaf.offsets), leaf.shape)
    if isinstance(leaf, RaggedColumn):
        return RaggedColumn(_own(leaf.values), _own(leaf.offsets))
    return aligned_copy(leaf)


def _rows_may_go(column: Any) -> bool:
    """Return whether every row is aligned, without looking at each; rows of numbers alone are no arrays."""
    if isinstance(column, np.ndarray):
        return column.ndim == 1 or column.dtype.hasobject or _lies_apart(column)
    return isinstance(column, BytesColumn)


def _lies_apart(column: Any) -> bool:
    row = column[0]
    return column.strides[0] % ALIGNMENT_BYTES == 0 and is_aligned(row)


def _apart(column: Any) -> Any:
    """Return the same rows with room between them, so that each begins where memory is aligned."""
    if not isinstance(column, np.ndarray) or not len(column) or _rows_may_go(column):
        return column
    row_bytes = prod(column.shape[1:]) * column.dtype.itemsize
    if not 0 < row_bytes <= _SMALL_ROW_BYTES:
        return column
    step = -(-row_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    inner = np.empty(column.shape[1:], column.dtype).strides
    memory: Any = aligned_empty((len(column) * step,), np.uint8)
    apart: Any = np.ndarray(column.shape, column.dtype, memory, strides=(step, *inner))
    apart[...] = column
    return apart
