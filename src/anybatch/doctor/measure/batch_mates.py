"""Find a map whose result for a record depends on who else is in the batch."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from anybatch.records import BytesColumn, RaggedColumn
from anybatch.stream import Stream
from anybatch.stream.functions import taking
from anybatch.stream.map import Map
from anybatch.stream.stage import Operation, Stage
from anybatch.stream.structure import leaves, row_count, rows_between

_ROWS = 64
_RELATIVE = 1e-4
"""Larger than what another order of summation makes of float32."""


def mixing_map(stream: Stream) -> Map | None:
    """Return the first map on columns that gives halves of a batch other values than the whole."""
    for stage in _maps(stream._stage):  # noqa: SLF001 - the stages are what a stream is
        columns = _some(stage.parent)
        if columns is not None and _mixes_if_it_can(stage, columns):
            return stage
    return None


def _mixes_if_it_can(stage: Map, columns: Any) -> bool:
    try:
        return mixes(taking(stage.function), columns)
    except Exception:  # noqa: BLE001 - a user's function may refuse half a batch, and in any way it likes
        return False


def mixes(function: Any, columns: Any) -> bool:
    """Whether a function of columns gives a record another value when others are with it.

    >>> mixes(lambda x: x - x.mean(), np.arange(6.0)), mixes(lambda x: x * 2, np.arange(6.0))
    (True, False)
    """
    rows = row_count(columns)
    half = rows // 2
    whole, again = function(columns), function(columns)
    if not _alike(whole, again):
        # it draws at random: that is not about the others
        return False
    first, second = (function(rows_between(columns, *span)) for span in ((0, half), (half, rows)))
    return not (_alike(_head(whole, half), first) and _alike(_tail(whole, half), second))


def _maps(stage: Stage) -> Iterator[Map]:
    """Yield the maps that see columns, the first one to run first."""
    if isinstance(stage, Operation):
        yield from _maps(stage.parent)
    if isinstance(stage, Map) and (stage.columnwise or stage.parent.batched):
        yield stage


def _some(stage: Stage) -> Any:
    """Return columns of a few records as they come out of a stage, or None without two."""
    stream = Stream(stage)
    columns = next(iter(stream if stage.batched else stream.take(_ROWS).batch(_ROWS)), None)
    if columns is None or row_count(columns) < 2:
        return None
    return rows_between(columns, 0, min(_ROWS, row_count(columns)))


def _head(columns: Any, count: int) -> Any:
    return rows_between(columns, 0, count)


def _tail(columns: Any, count: int) -> Any:
    return rows_between(columns, count, row_count(columns))


def _alike(one: Any, other: Any) -> bool:
    pairs = zip(leaves(one), leaves(other), strict=True)
    return all(_equal(a, b) for a, b in pairs)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, BytesColumn | RaggedColumn):
        return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape:
        # padded to the longest of those that are together, which training takes care of
        return bool(one.shape[1:] != other.shape[1:])
    if one.dtype.kind not in "fc":
        return bool(np.array_equal(one, other))
    # one infinite number would make all the others agree
    scale = float(np.max(np.abs(one), initial=0.0, where=np.isfinite(one)))
    return bool(np.allclose(one, other, rtol=_RELATIVE, atol=_RELATIVE * scale, equal_nan=True))
