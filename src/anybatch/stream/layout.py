"""How columns of any kind lie in plain buffers of bytes, and how they are made of them again."""

from ast import literal_eval
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anybatch.errors import AnybatchError
from anybatch.records import BytesColumn, Column, PaddedColumn, RaggedColumn
from anybatch.stream.structure import Loose, Structure, as_columns, mapped

Shape: TypeAlias = tuple[int, ...]
Memory: TypeAlias = NDArray[np.uint8]


class CannotStore(AnybatchError, TypeError):
    """Columns that a cache cannot keep."""

    def __init__(self, column: str, problem: str) -> None:
        super().__init__(column, problem)
        self.column = column
        self.problem = problem

    def __str__(self) -> str:
        return f"`cache` cannot keep {self.column or 'the records'}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Dense:
    """An array: one buffer of values."""

    dtype: np.dtype[Any]
    shape: Shape


@dataclass(frozen=True, slots=True)
class Strings:
    """Bytes of any length: a buffer of offsets, one of bytes. `objects`: they came as an array of objects."""

    shape: Shape
    objects: bool


@dataclass(frozen=True, slots=True)
class Lists:
    """Lists of any length: a buffer of offsets, then what the values need.

    `padding`: they become equally long in a batch, by this; as text, because NaN is not equal to itself.
    """

    values: "Layout"
    padding: str | None = None


Layout: TypeAlias = Dense | Strings | Lists


def layout_of(column: Any, name: str) -> Layout:
    """Return how a column lies in buffers."""
    if isinstance(column, BytesColumn):
        return Strings(tuple(column.shape), objects=False)
    if isinstance(column, RaggedColumn):
        padding = repr(column.padding) if isinstance(column, PaddedColumn) else None
        return Lists(layout_of(column.values, name), padding)
    if not isinstance(column, np.ndarray) or not column.ndim:
        raise CannotStore(name, f"it is of type {type(column).__name__}; return arrays, bytes or numbers")
    if column.dtype.hasobject:
        return Strings(column.shape[1:], objects=True)
    return Dense(column.dtype, column.shape[1:])


def agreed(known: Layout, column: Any, name: str, *, loose: bool) -> Layout:
    """Return one layout for what is known and one column more. Only loose records may differ in length."""
    found = layout_of(column, name)
    if found == known:
        return known
    if loose:
        lists = _as_lists(known)
        if lists is not None and lists == _as_lists(found):
            return lists
    raise CannotStore(name, f"its first records are {_told(known)}, and later ones {_told(found)}")


def pieces(column: Any, layout: Layout, name: str) -> list[NDArray[Any]]:
    """Return what goes into the buffers of a layout: for offsets, the lengths."""
    match layout:
        case Dense():
            return [column]
        case Strings():
            strings = _strings(column, name) if layout.objects else column
            return [np.diff(strings.offsets), strings.values]
        case Lists():
            lists = as_lists(column)
            if lists is None:
                raise CannotStore(name, f"it is of type {type(column).__name__} and was lists before")
            return [lists.row_lengths, *pieces(lists.values, layout.values, name)]


def buffers_of(layout: Layout) -> list[bool]:
    """Return one item per buffer: whether it holds offsets."""
    match layout:
        case Dense():
            return [False]
        case Strings():
            return [True, False]
        case Lists():
            return [True, *buffers_of(layout.values)]


def column_in(layout: Layout, buffers: list[Memory], rows: int) -> Column:
    """Return the column of so many rows that lies in the buffers, sharing their memory."""
    match layout:
        case Dense():
            return buffers[0].view(layout.dtype).reshape(rows, *layout.shape)
        case Strings():
            return BytesColumn(buffers[1], buffers[0].view(np.int64), layout.shape)
        case Lists():
            offsets = buffers[0].view(np.int64)
            values = column_in(layout.values, buffers[1:], int(offsets[-1]))
            if layout.padding is None:
                return RaggedColumn(values, offsets)
            return PaddedColumn(values, offsets, _padding_of(layout.padding))


def as_it_came(column: Column, layout: Layout) -> Column:
    """Return stored rows as the functions below the cache made them."""
    return np.asarray(column) if isinstance(layout, Strings) and layout.objects else column


def named_leaves(structure: Structure, name: str = "") -> list[tuple[str, Any]]:
    """Return the leaves of a structure with what to call them."""
    if isinstance(structure, Mapping):
        parts = list(structure.items())
    elif isinstance(structure, tuple):
        parts = list(enumerate(structure))
    else:
        return [] if structure is None else [(name and f"`{name}`", structure)]
    return [leaf for key, part in parts for leaf in named_leaves(part, f"{name}.{key}" if name else str(key))]


def columns_of(value: Structure) -> tuple[Structure, bool]:
    """Return the columns of a chunk, and whether they were loose records."""
    return as_columns(value), isinstance(value, Loose)


def to_json(structure: Structure) -> Any:
    """Return a structure of layouts as JSON has it."""
    if isinstance(structure, Mapping):
        for key in structure:
            if not isinstance(key, str):
                raise CannotStore(repr(key), "only names that are str can go to disk")
        return {"mapping": [[name, to_json(part)] for name, part in structure.items()]}
    if isinstance(structure, tuple):
        return {"tuple": [to_json(part) for part in structure]}
    match structure:
        case None:
            return {"nothing": []}
        case Dense():
            return {"dense": [_dtype_text(structure.dtype), list(structure.shape)]}
        case Strings():
            return {"strings": [list(structure.shape), structure.objects]}
        case Lists(padding=None):
            return {"lists": to_json(structure.values)}
        case Lists():
            return {"padded": [structure.padding, to_json(structure.values)]}
    raise AssertionError("a structure of layouts has layouts for leaves")


def from_json(text: Any) -> Structure:
    """Return the structure of layouts that `to_json` described."""
    ((kind, content),) = text.items()
    match kind:
        case "mapping":
            return {name: from_json(part) for name, part in content}
        case "tuple":
            return tuple(from_json(part) for part in content)
        case "nothing":
            return None
        case "dense":
            return Dense(np.dtype(content[0]), tuple(content[1]))
        case "strings":
            return Strings(tuple(content[0]), bool(content[1]))
        case "lists":
            return Lists(from_json(content))
        case "padded":
            return Lists(from_json(content[1]), content[0])
    raise ValueError(f"{kind!r} is no layout")


def columns_in(layouts: Structure, buffers: list[Memory], rows: int) -> Structure:
    """Return the columns that lie in the buffers of all layouts, in order."""
    rest = iter(buffers)
    return mapped(
        lambda layout: column_in(layout, [next(rest) for _ in buffers_of(layout)], rows),
        layouts,
    )


def _as_lists(layout: Layout) -> Lists | None:
    if isinstance(layout, Dense) and layout.shape:
        return Lists(Dense(layout.dtype, layout.shape[1:]))
    return layout if isinstance(layout, Lists) else None


def as_lists(column: Any) -> RaggedColumn | None:
    """Return a column of lists; of an array whose rows are all of one length too."""
    if isinstance(column, RaggedColumn):
        return column
    if not isinstance(column, np.ndarray) or column.ndim < 2:
        return None
    rows, length = column.shape[:2]
    return RaggedColumn(column.reshape(rows * length, *column.shape[2:]), np.arange(rows + 1) * length)


def _strings(column: Any, name: str) -> BytesColumn:
    flat = column.reshape(-1).tolist()
    if not all(isinstance(one, bytes) for one in flat):
        kind = next(type(one).__name__ for one in flat if not isinstance(one, bytes))
        raise CannotStore(name, f"it holds Python objects of type {kind}; return arrays, bytes or numbers")
    offsets = np.zeros(len(flat) + 1, np.int64)
    np.cumsum([len(one) for one in flat], out=offsets[1:])
    return BytesColumn(np.frombuffer(b"".join(flat), np.uint8), offsets, column.shape[1:])


def _padding_of(text: str) -> Any:
    # what Python writes for these is no literal
    return float(text) if text in {"nan", "inf", "-inf"} else literal_eval(text)


def _dtype_text(dtype: np.dtype[Any]) -> str:
    if dtype.names is not None or np.dtype(dtype.str) != dtype:
        raise CannotStore("", f"values of type {dtype} have no name that a file could keep")
    return dtype.str


def _told(layout: Layout) -> str:
    match layout:
        case Dense():
            return f"{layout.dtype} of shape {layout.shape}"
        case Strings():
            return f"bytes of shape {layout.shape}" if layout.shape else "bytes"
        case Lists():
            return f"lists of {_told(layout.values)}"
