"""What a batch holds besides dense arrays: bytes of any length, and lists of any length."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import pairwise
from math import prod
from operator import index
from typing import Any, Generic, Self, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from anybatch.records.aligned import aligned_empty, aligned_rows
from anybatch.records.dtypes import NUMBERS, Shape, cast_exactly, objects, short

Offsets: TypeAlias = NDArray[np.int64]
Values = TypeVar("Values", NDArray[np.uint8], "Column")

# up to so many values each, rows are copied faster all at once than one by one
_SHORT = 32


class _EndToEnd(ABC, Generic[Values]):
    """Values end to end and the offsets that cut them into rows; a slice shares the memory of both."""

    __slots__ = ("_offsets", "_values")
    _values: Values
    _offsets: Offsets  # of a slice they start above 0: moved to 0 when somebody asks, not before

    @property
    def values(self) -> Values:
        """The values of all rows, end to end."""
        return self._values[int(self._offsets[0]) : int(self._offsets[-1])]

    @property
    def offsets(self) -> Offsets:
        """Where each stretch of `values` starts, and where the last one ends."""
        return self._offsets - self._offsets[0] if self._offsets[0] else self._offsets

    @property
    def nbytes(self) -> int:
        """The bytes of the values and of the offsets."""
        return self.values.nbytes + self._offsets.nbytes

    @abstractmethod
    def __len__(self) -> int: ...

    @overload
    def __getitem__(self, rows: int) -> Any: ...
    @overload
    def __getitem__(self, rows: slice) -> Self: ...
    def __getitem__(self, rows: int | slice) -> Any:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            return (
                self._cut(start, max(start, stop)) if step == 1 else self.take(np.arange(start, stop, step))
            )
        at = _row_number(rows, len(self))
        return self._row(self._cut(at, at + 1))

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return np.array_equal(self.offsets, other.offsets) and _same(self.values, other.values)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        # a slice takes only its own rows to another process
        return type(self), (self.values, self.offsets)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self):,} rows, {_held(self.values)})"

    @abstractmethod
    def to_list(self) -> list[Any]:
        """Return the rows as Python values."""

    @abstractmethod
    def take(self, rows: NDArray[np.int64]) -> Self:
        """Return a copy of some rows, in the order given."""

    @abstractmethod
    def _cut(self, start: int, stop: int) -> Self: ...

    @staticmethod
    @abstractmethod
    def _row(one: Any) -> Any: ...


class BytesColumn(_EndToEnd[NDArray[np.uint8]]):
    """Bytes values end to end: value `i` is `values[offsets[i]:offsets[i + 1]]`.

    With a shape each row has as many values as the shape holds.

    >>> column = BytesColumn(np.frombuffer(b"onetwo", np.uint8), np.array([0, 3, 6]))
    >>> column[1], column.to_list()
    (b'two', [b'one', b'two'])
    """

    __slots__ = ("shape",)

    def __init__(self, values: NDArray[np.uint8], offsets: Offsets, shape: Shape = ()) -> None:
        self._values = values
        self._offsets = offsets
        self.shape = shape

    def __len__(self) -> int:
        return (len(self._offsets) - 1) // prod(self.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BytesColumn) and self.shape == other.shape and super().__eq__(other)

    __hash__ = None

    def __reduce__(self) -> Any:
        return type(self), (self.values, self.offsets, self.shape)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("an array of bytes objects is always a copy; .values is the memory itself")
        array = objects(self._flat(), (len(self), *self.shape))
        return array if dtype is None else array.astype(dtype)

    def to_list(self) -> list[Any]:
        """Return the values, nested as the shape says."""
        return self.__array__().tolist() if self.shape else self._flat()

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Return a copy of some rows, in the order given."""
        each = prod(self.shape)
        stretches = (np.asarray(rows)[:, None] * each + np.arange(each)).reshape(-1)
        return type(self)(*_gathered(self._values, self._offsets, stretches), self.shape)

    def _flat(self) -> list[bytes]:
        memory = self._values.data
        return [memory[start:end].tobytes() for start, end in pairwise(self._offsets.tolist())]

    def _cut(self, start: int, stop: int) -> Self:
        each = prod(self.shape)
        return type(self)(self._values, self._offsets[start * each : stop * each + 1], self.shape)

    @staticmethod
    def _row(one: "BytesColumn") -> Any:
        return one.to_list()[0]


class RaggedColumn(_EndToEnd["Column"]):
    """Lists of any length, end to end: row `i` is `values[offsets[i]:offsets[i + 1]]`.

    The values are an array, a `BytesColumn`, or a `RaggedColumn` if there are lists in lists.

    >>> column = RaggedColumn(np.array([1, 2, 3]), np.array([0, 1, 3]))
    >>> column[1], column.to_list()
    (array([2, 3]), [[1], [2, 3]])
    >>> column.to_padded(-1)
    array([[ 1, -1],
           [ 2,  3]])
    """

    __slots__ = ()

    def __init__(self, values: "Column", offsets: Offsets) -> None:
        self._values = values
        self._offsets = offsets

    @property
    def row_lengths(self) -> Offsets:
        """How many values each row has."""
        return np.diff(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        raise TypeError("rows of different lengths make no array; .to_padded() makes them equally long")

    def to_list(self) -> list[Any]:
        """Return the rows as lists."""
        values = self.values
        flat = values.tolist() if isinstance(values, np.ndarray) else values.to_list()
        return [flat[start:end] for start, end in pairwise(self.offsets.tolist())]

    def to_padded(self, value: Any = 0, *, length: int | None = None) -> NDArray[Any]:
        """Return a dense array in which `value` fills each row up to the longest, or up to `length`.

        Bytes become an array of objects, filled with b"" unless told otherwise.
        """
        dense, lengths = _dense(self.values, value), self.row_lengths
        longest = int(lengths.max(initial=0))
        length = longest if length is None else length
        if length < longest:
            raise ValueError(
                f"a row has {longest:,} values, more than {length:,}; pad to {longest:,} or more"
            )
        padded = _filled((len(self), length, *dense.shape[1:]), dense.dtype, value)
        padded[np.arange(length) < lengths[:, None]] = dense
        return padded

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Return a copy of some rows, in the order given."""
        return self._of(*_gathered(self._values, self._offsets, np.asarray(rows)))

    def _cut(self, start: int, stop: int) -> Self:
        return self._of(self._values, self._offsets[start : stop + 1])

    def _of(self, values: "Column", offsets: Offsets) -> Self:
        return type(self)(values, offsets)

    @staticmethod
    def _row(one: "RaggedColumn") -> Any:
        return one.values.to_list() if isinstance(one.values, BytesColumn) else one.values


class PaddedColumn(RaggedColumn):
    """Lists that become equally long as soon as it is known which of them make a batch.

    >>> PaddedColumn(np.array([1, 2, 3]), np.array([0, 1, 3]), -1).as_array()
    array([[ 1, -1],
           [ 2,  3]])
    """

    __slots__ = ("padding",)

    def __init__(self, values: "Column", offsets: Offsets, padding: Any) -> None:
        super().__init__(values, offsets)
        self.padding = padding

    def __reduce__(self) -> Any:
        return type(self), (self.values, self.offsets, self.padding)

    def as_array(self) -> NDArray[Any]:
        """Return the rows as long as the longest."""
        return self.to_padded(self.padding)

    @property
    def array_bytes(self) -> int:
        """What that takes."""
        values, rows = self.values, len(self) * int(self.row_lengths.max(initial=0))
        each = 8 * prod(values.shape) if isinstance(values, BytesColumn) else values[:1].nbytes
        return rows * each

    def _of(self, values: "Column", offsets: Offsets) -> Self:
        return type(self)(values, offsets, self.padding)


Column: TypeAlias = NDArray[Any] | BytesColumn | RaggedColumn


def row(column: Column, at: int) -> Any:
    """Return one record's value: a NumPy scalar, bytes, an array, or a `RaggedColumn` of lists in lists."""
    if isinstance(column, np.ndarray):
        return column[at]
    at = _row_number(at, len(column))
    one = column[at : at + 1]
    if isinstance(one, BytesColumn):
        return np.asarray(one)[0]
    return np.asarray(one.values) if isinstance(one.values, BytesColumn) else one.values


def take_rows(column: Column, rows: NDArray[np.int64]) -> Column:
    """Return a copy of some rows, in the order given. For a stretch of rows `column[a:b]` needs no copy."""
    return column.take(rows) if isinstance(column, BytesColumn | RaggedColumn) else column[rows]


def _row_number(at: int, rows: int) -> int:
    number = index(at)
    if not -rows <= number < rows:
        raise IndexError(f"row {number} of a column of {rows:,} rows")
    return number % rows


def _same(a: Column, b: Column) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return type(a) is type(b) and bool(a == b)


def _held(values: Column) -> str:
    return f"{len(values):,} x {values.dtype}" if isinstance(values, np.ndarray) else repr(values)


def _gathered(values: Any, offsets: Offsets, stretches: NDArray[np.int64]) -> tuple[Any, Offsets]:
    starts, ends = offsets[:-1][stretches], offsets[1:][stretches]
    moved: Any = aligned_empty((len(stretches) + 1,), np.int64)
    moved[0] = 0
    np.cumsum(ends - starts, out=moved[1:])
    if isinstance(values, np.ndarray) and moved[-1] > _SHORT * len(stretches):
        # stretch by stretch: the position of each single byte would take eight times the memory
        parts = (values[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True))
        copy = aligned_empty((int(moved[-1]), *values.shape[1:]), values.dtype)
        return np.concatenate([values[:0], *parts], out=copy), moved
    positions = np.arange(moved[-1]) + np.repeat(starts - moved[:-1], ends - starts)
    return (
        aligned_rows(values, positions) if isinstance(values, np.ndarray) else values.take(positions)
    ), moved


def _dense(values: Column, padding: Any) -> NDArray[Any]:
    return values.to_padded(padding) if isinstance(values, RaggedColumn) else np.asarray(values)


def _filled(shape: Shape, dtype: np.dtype[Any], value: Any) -> NDArray[Any]:
    array: NDArray[Any] = np.empty(shape, dtype) if dtype.hasobject else aligned_empty(shape, dtype)
    # .fill takes an object as it is; np.full would cut the zero bytes off its end
    array.fill(_filling(value, dtype))
    return array


def _filling(value: Any, dtype: np.dtype[Any]) -> Any:
    if dtype.hasobject:
        fits, filling = isinstance(value, bytes) or (isinstance(value, int) and value == 0), value or b""
    else:
        filling = cast_exactly(value, dtype.name) if dtype.name in NUMBERS else value
        fits = filling is not None and np.ndim(filling) == 0
    if not fits:
        kind = "bytes" if dtype.hasobject else dtype.name
        raise ValueError(f"{short(value)} cannot fill up lists of {kind}; give one value that fits")
    return filling
