"""Values as users nest them: tuples and mappings of columns, one column alone, or loose records."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anybatch.errors import AnybatchError
from anybatch.records import (
    BytesColumn,
    Column,
    PaddedColumn,
    RaggedColumn,
    aligned_copy,
    aligned_empty,
    aligned_rows,
    row,
    take_rows,
)

Structure: TypeAlias = Any
"""A leaf, or a tuple or mapping of structures."""


class KindsDiffer(AnybatchError, ValueError):
    """Rows of one column that are not of one type and shape: what they became would depend on their batch."""

    def __init__(self, column: str, each: tuple[str, ...], told: tuple[str, ...] = ()) -> None:
        super().__init__(column, each, told)
        self.column = column
        self.each = each
        self.kinds = told or tuple(sorted(set(each)))

    def __str__(self) -> str:
        which = f"column `{self.column}`" if self.column else "one column"
        return (
            f"rows of {which} have one type and shape; these have {' and '.join(self.kinds)}; "
            "make them one where they come from, or in a map"
        )

    def in_streams(self, streams: Sequence[int]) -> "KindsDiffer":
        """Return the same with the streams that have each kind."""
        found: dict[str, set[int]] = {}
        for kind, stream in zip(self.each, streams, strict=True):
            found.setdefault(kind, set()).add(stream)
        told = (f"{kind} in stream {', '.join(map(str, sorted(found[kind])))}" for kind in sorted(found))
        return KindsDiffer(self.column, self.each, tuple(told))


class Loose(list[Any]):
    """Records as a function made them, one by one: they become columns when a batch needs them."""


class ListRow(np.ndarray[Any, Any]):
    """One row of a ragged column: as long as others by chance, not by its nature."""


class PaddedRow(ListRow):
    """One row of a column that will be padded, and with what."""

    padding: Any = None

    def __array_finalize__(self, other: Any) -> None:
        self.padding = getattr(other, "padding", None)


def mapped(change: Callable[..., Any], first: Structure, *others: Structure) -> Structure:
    """Return a structure whose leaves are `change(leaf, …)` of the leaves of structures of one shape.

    None is a part that is left out, and stays it.
    """
    if others:
        _check_alike(first, others)
    if first is None:
        return None
    if isinstance(first, Mapping):
        return {
            name: mapped(change, part, *(other[name] for other in others)) for name, part in first.items()
        }
    if isinstance(first, tuple):
        return tuple(mapped(change, *parts) for parts in zip(first, *others, strict=True))
    return change(first, *others)


def by_name(
    change: Callable[[Sequence[Any], str], Any], structures: Sequence[Structure], name: str = ""
) -> Structure:
    """Return a structure whose leaves are `change(leaves, name)` of the leaves of structures of one shape."""
    first = structures[0]
    _check_alike(first, structures[1:])
    if first is None:
        return None
    if isinstance(first, Mapping):
        return {
            key: by_name(change, [one[key] for one in structures], f"{name}.{key}" if name else str(key))
            for key in first
        }
    if isinstance(first, tuple):
        parts = enumerate(zip(*structures, strict=True))
        return tuple(by_name(change, part, f"{name}.{at}" if name else str(at)) for at, part in parts)
    return change(structures, name)


def _check_alike(first: Structure, others: Sequence[Structure]) -> None:
    # as often as there are records: by sets that C fills, and one by one only if something is wrong
    kind = _kind(type(first))
    alike = all(_kind(other) is kind for other in set(map(type, others)))
    if alike and others and kind is not object:
        alike = set(map(_outline, others)) == {_outline(first)}
    if not alike:
        other = next(other for other in others if _shape(other) != _shape(first))
        raise ValueError(
            f"elements of a stream have one structure; these have {_shape(first)} and {_shape(other)}"
        )


def _kind(of: type) -> type:
    return next((kind for kind in (Mapping, tuple, type(None)) if issubclass(of, kind)), object)


def _outline(structure: Structure) -> Any:
    return frozenset(structure) if isinstance(structure, Mapping) else structure and len(structure)


def _shape(structure: Structure) -> str:
    if isinstance(structure, Mapping):
        return f"the names {', '.join(map(repr, structure))}"
    if isinstance(structure, tuple):
        return f"a tuple of {len(structure)}"
    return "nothing" if structure is None else f"a value of type {type(structure).__name__}"


def leaves(structure: Structure) -> Iterator[Any]:
    """Yield the leaves of a structure, in order."""
    # what nearly all are, without asking an abstract class, which costs a microsecond
    if isinstance(structure, dict | Mapping):
        for part in structure.values():
            yield from leaves(part)
    elif isinstance(structure, tuple):
        for part in structure:
            yield from leaves(part)
    elif structure is not None:
        yield structure


def bytes_of(value: Structure) -> int:
    """Return how much memory a structure takes; of loose records, as if all were like the first."""
    if isinstance(value, Loose):
        return len(value) * bytes_of(value[0]) if value else 0
    return sum(_leaf_bytes(leaf) for leaf in leaves(value))


def _leaf_bytes(leaf: Any) -> int:
    if isinstance(leaf, bytes | str):
        return len(leaf)
    return leaf.nbytes if isinstance(leaf, BytesColumn | RaggedColumn) else _as_array(leaf).nbytes


def row_count(columns: Structure) -> int:
    """Return how many rows the columns have; an error if they disagree."""
    if isinstance(columns, Loose):
        return len(columns)
    counts = {_rows_of(column) for column in leaves(columns)}
    if len(counts) != 1:
        found = ", ".join(str(count) for count in sorted(counts)) or "none"
        raise ValueError(f"columns of one structure have equally many rows; these have {found}")
    return counts.pop()


def _rows_of(column: Any) -> int:
    if isinstance(column, BytesColumn | RaggedColumn) or (isinstance(column, np.ndarray) and column.ndim):
        return len(column)
    raise TypeError(f"a column is an array with rows; got {type(column).__name__}")


def rows_between(columns: Structure, start: int, stop: int) -> Structure:
    """Return some rows that follow each other, sharing the memory of all."""
    if isinstance(columns, Loose):
        return Loose(columns[start:stop])
    return mapped(lambda column: column[start:stop], columns)


def rows_at(columns: Structure, at: Any) -> Structure:
    """Return a copy of some rows, in the order given."""
    if isinstance(columns, Loose):
        return Loose(columns[int(one)] for one in at)
    return mapped(lambda column: _taken(column, at), columns)


def record(columns: Structure, at: int) -> Any:
    """Return one row."""
    if isinstance(columns, Loose):
        return mapped(_unmarked, columns[at])
    return mapped(lambda column: row(column, at), columns)


def records(columns: Structure) -> Iterator[Any]:
    """Yield the rows one by one, as functions get them."""
    if isinstance(columns, Loose):
        yield from columns
        return
    for at in range(row_count(columns)):
        yield mapped(lambda column: _marked(column, at), columns)  # noqa: B023


def joined(parts: Sequence[Structure]) -> Structure:
    """Return the rows of several structures one behind the other; of one, itself."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, Loose) for part in parts):
        return Loose(one for part in parts for one in part)
    return by_name(end_to_end, [as_columns(part) for part in parts])


def as_columns(value: Structure) -> Structure:
    """Return columns of loose records: numbers as arrays, bytes and lists as columns of their own."""
    if not isinstance(value, Loose):
        return value
    return by_name(_column_of, value)


def end_to_end(columns: Sequence[Column], name: str = "") -> Column:
    """Return the rows of several columns of one kind in one; `name` is what an error calls it."""
    columns = alike(columns)
    first = columns[0]
    if isinstance(first, np.ndarray):
        _check_kind(columns, name)
        return _aligned(np.concatenate, columns, (sum(map(len, columns)), *first.shape[1:]))
    inner = [column.values for column in columns]
    # empty lists are of no type
    values = end_to_end([one for one in inner if len(one)] or inner[:1], name)
    offsets = _offsets_of(np.concatenate([np.diff(column.offsets) for column in columns]))
    if isinstance(first, BytesColumn):
        return BytesColumn(values, offsets, first.shape)  # type: ignore[arg-type]
    return _lists(values, offsets, columns)


def _lists(values: Column, offsets: Any, made_of: Sequence[Any]) -> RaggedColumn:
    """Return lists that will be padded if all that they are made of would have been, and alike."""
    paddings = [getattr(one, "padding", None) for one in made_of]
    # by text: NaN is not equal to itself
    if paddings[0] is None or len(set(map(repr, paddings))) > 1:
        return RaggedColumn(values, offsets)
    return PaddedColumn(values, offsets, paddings[0])


def padded(columns: Structure) -> Structure:
    """Return the columns of a batch with lists that are to be padded as long as the longest of them."""
    # a mapping of the user's own kind stays what it is where there are none
    if not any(isinstance(one, PaddedColumn) for one in leaves(columns)):
        return columns
    return mapped(lambda one: one.as_array() if isinstance(one, PaddedColumn) else one, columns)


def padded_bytes(columns: Structure) -> int:
    """Return how much that takes besides."""
    return sum(one.array_bytes for one in leaves(columns) if isinstance(one, PaddedColumn))


def dealt(columns: Sequence[Any], rows: Sequence[Any], places: Sequence[Any], name: str = "") -> Column:
    """Return one column with some rows of several, each at its place."""
    columns = alike(columns)
    if not all(isinstance(column, np.ndarray) for column in columns):
        together = end_to_end([_taken(column, at) for column, at in zip(columns, rows, strict=True)], name)
        return _taken(together, np.argsort(np.concatenate(places)))
    _check_kind(columns, name)
    # into place at once: large arrays that come and go leave holes in memory
    column = aligned_empty((sum(map(len, places)), *columns[0].shape[1:]), np.result_type(*columns))
    for one, at, to in zip(columns, rows, places, strict=True):
        column[to] = one[at]
    return column


def alike(columns: Sequence[Any], *, loose: bool = False) -> list[Any]:
    """Return columns of lists where some are; of `loose` records also where rows differ in length."""
    lists = any(isinstance(column, RaggedColumn) for column in columns)
    if loose and not lists:
        shapes = {row_shape(column) for column in columns}
        lists = len(shapes) > 1 and all(shapes) and len({shape[1:] for shape in shapes}) == 1
    return [_as_lists(column) if lists else column for column in columns]


def row_shape(column: Any) -> tuple[int, ...]:
    """Return the shape that every row of a column has which is no column of lists."""
    return tuple(column.shape[1:] if isinstance(column, np.ndarray) else column.shape)


def _check_kind(columns: Sequence[Any], name: str) -> None:
    """Raise an error if types or shapes differ: what came out would depend on where the rows were cut."""
    kinds = tuple(map(kind_of, columns))
    if len(set(kinds)) > 1:
        raise KindsDiffer(name, kinds)


def innermost(column: Any) -> Any:
    """Return what is in the lists of a column; of others, the column itself."""
    return innermost(column.values) if isinstance(column, RaggedColumn) else column


def kind_of(column: Any) -> str:
    """Return type and shape of the rows of a column, as an error tells them; of bytes nothing."""
    if isinstance(column, RaggedColumn):
        return f"lists of {kind_of(column.values)}"
    return f"{column.dtype} {column.shape[1:]}" if isinstance(column, np.ndarray) else "bytes"


def _offsets_of(lengths: Iterable[int]) -> Any:
    counts = np.fromiter(lengths, np.int64)
    offsets: Any = aligned_empty((len(counts) + 1,), np.int64)
    offsets[0] = 0
    np.cumsum(counts, out=offsets[1:])
    return offsets


def _aligned(join: Callable[..., Any], arrays: Sequence[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return arrays joined in memory that frameworks take without a copy."""
    array: NDArray[Any] = join(arrays, out=aligned_empty(shape, np.result_type(*arrays)))
    return array


def _taken(column: Column, at: Any) -> Column:
    return aligned_rows(column, at) if isinstance(column, np.ndarray) else take_rows(column, at)


def _as_lists(column: Any) -> RaggedColumn:
    """Return rows that are equally long by chance as rows of any length."""
    if isinstance(column, RaggedColumn):
        return column
    if isinstance(column, BytesColumn):
        each = prod(column.shape)
        return RaggedColumn(BytesColumn(column.values, column.offsets), np.arange(len(column) + 1) * each)
    rows, length = column.shape[:2]
    return RaggedColumn(column.reshape(-1, *column.shape[2:]), np.arange(rows + 1) * length)


def _marked(column: Column, at: int) -> Any:
    value = row(column, at)
    if not isinstance(column, RaggedColumn) or not isinstance(value, np.ndarray):
        return value
    if not isinstance(column, PaddedColumn):
        return value.view(ListRow)
    marked = value.view(PaddedRow)
    marked.padding = column.padding
    return marked


def _unmarked(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, ListRow) else value


def _column_of(values: Sequence[Any], name: str) -> Column:
    first = values[0]
    if isinstance(first, RaggedColumn):
        return RaggedColumn(end_to_end(values, name), _offsets_of(map(len, values)))
    if isinstance(first, bytes | str):
        return _strings([value.encode() if isinstance(value, str) else value for value in values])
    arrays = _of_one_type([_as_array(value) for value in values], name)
    lists = any(isinstance(value, ListRow) for value in values)
    if len({array.shape for array in arrays}) == 1 and not lists:
        return _stacked(arrays)
    if len({array.shape[1:] for array in arrays}) == 1 and all(array.ndim for array in arrays):
        flat = _aligned(np.concatenate, arrays, (sum(map(len, arrays)), *arrays[0].shape[1:]))
        rows = _strings(list(flat)) if flat.dtype == object else flat
        return _lists(rows, _offsets_of(map(len, arrays)), values)
    shapes = ", ".join(sorted({str(array.shape) for array in arrays})[:4])
    raise ValueError(f"records of a batch have the shapes {shapes}; only the first dimension may differ")


def _as_array(value: Any) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(
            f"a {type(value).__name__} that a function returned has parts that make no array; "
            "a tuple or a mapping keeps its parts apart"
        ) from None


def _of_one_type(arrays: list[Any], name: str) -> list[Any]:
    """Return arrays of one type; an error if they have several, of which NumPy would choose by batch."""
    if len({array.dtype for array in arrays}) == 1:
        return arrays
    # an empty list is of no type, and text is as long as it is
    kinds = [_text_or_type(array) for array in arrays]
    known = {kind for array, kind in zip(arrays, kinds, strict=True) if array.size}
    if len(known) > 1:
        raise KindsDiffer(name, tuple(map(str, kinds)))
    return [array if array.size else array.astype(*known or kinds[:1]) for array in arrays]


def _text_or_type(array: NDArray[Any]) -> np.dtype[Any]:
    return np.dtype(array.dtype.kind) if array.dtype.kind in "SU" else array.dtype


def _stacked(arrays: Sequence[Any]) -> Column:
    shape = arrays[0].shape
    if shape and arrays[0].dtype == object:
        flat = [value for array in arrays for value in array.flat]
        if all(isinstance(value, bytes) for value in flat):
            column = _strings(flat)
            return BytesColumn(column.values, column.offsets, shape)
    return _aligned(np.stack, arrays, (len(arrays), *shape))


def _strings(values: list[bytes]) -> BytesColumn:
    joined_up = np.frombuffer(b"".join(values), np.uint8)
    return BytesColumn(aligned_copy(joined_up), _offsets_of(map(len, values)))
