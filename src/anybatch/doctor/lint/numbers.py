"""What calls of NumPy, arithmetic and indexing give, as far as a script shows it."""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from anybatch.doctor.lint.values import Array, Known, Length, Order, Value

_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
_LARGEST = 1 << 62

_DIMENSIONS_SPREAD = {"rand", "randn"}
_DRAWN = {"random", "random_sample", "standard_normal"}
_DRAWN_BY_SIZE = {"normal", "uniform", "randint", "integers", "binomial", "poisson", "choice"}
_FILLED = {"zeros", "ones", "empty", "full"}
_STACKED = {"concatenate", "vstack", "hstack", "stack", "append"}
_PERMUTED = {"permutation", "shuffle"}

_ITEM_BYTES = {"64": 8, "32": 4, "16": 2, "int8": 1, "uint8": 1, "bool": 1}


def arithmetic(left: Value, kind: ast.operator, right: Value) -> Value:
    """Return what an operation on two values gives."""
    if isinstance(left, Known) and isinstance(right, Known):
        return _calculated(left.value, kind, right.value)
    array = next((side for side in (left, right) if isinstance(side, Array)), None)
    return replace(array, name="") if array else None


def _calculated(left: object, kind: ast.operator, right: object) -> Value:
    if (
        not isinstance(left, int | float)
        or not isinstance(right, int | float)
        or type(kind) not in _ARITHMETIC
    ):
        return None
    if max(abs(left), abs(right)) > _LARGEST:
        return None
    try:
        return Known(_ARITHMETIC[type(kind)](left, right))
    except (ArithmeticError, ValueError):
        return None


def array_call(name: str, args: Sequence[Value], given: Mapping[str, Value]) -> Value:
    """Return the array that a function of NumPy, or of one of its generators, makes."""
    shape = _shape_of(name, args, given)
    itemsize = item_bytes(given.get("dtype"))
    if name in _DIMENSIONS_SPREAD | _DRAWN | _DRAWN_BY_SIZE:
        return Array(shape=shape, order=Order.RANDOM, itemsize=itemsize)
    if name in _FILLED | {"arange", "linspace"}:
        return Array(shape=shape, itemsize=itemsize)
    if name in _PERMUTED:
        return _permuted(args)
    return _stacked(args) if name in _STACKED else None


def _shape_of(name: str, args: Sequence[Value], given: Mapping[str, Value]) -> tuple[int | None, ...] | None:
    if name in _DIMENSIONS_SPREAD:
        return tuple(map(_dimension, args))
    if name in _DRAWN_BY_SIZE:
        # the size stands behind the two bounds or moments, or behind what is chosen from
        place = 1 if name == "choice" else 2
        size = given.get("size", args[place] if len(args) > place else None)
    else:
        size = given.get("size", given.get("shape", args[0] if args else None))
    if isinstance(size, tuple):
        return tuple(map(_dimension, size))
    return None if size is None else (_dimension(size),)


def _dimension(value: Value) -> int | None:
    known = value.value if isinstance(value, Known) else None
    return known if isinstance(known, int) and not isinstance(known, bool) else None


def item_bytes(dtype: Value) -> int:
    """Return the bytes of one number of a dtype; NumPy's own choice is 8.

    >>> item_bytes(Known("float32")), item_bytes(None)
    (4, 8)
    """
    name = str(dtype.value) if isinstance(dtype, Known) else ""
    return next((size for ending, size in _ITEM_BYTES.items() if name.endswith(ending)), 8)


def _permuted(args: Sequence[Value]) -> Value:
    first = args[0] if args else None
    if isinstance(first, Array):
        return replace(first, order=Order.RANDOM)
    return Array(shape=(_dimension(first),), order=Order.RANDOM)


def _stacked(args: Sequence[Value]) -> Value:
    parts = args[0] if args and isinstance(args[0], tuple) else tuple(args)
    arrays = [part for part in parts if isinstance(part, Array)]
    if not arrays or len(arrays) < len(parts):
        return None
    counts = [array.rows for array in arrays if array.rows is not None]
    rows = sum(counts) if len(counts) == len(arrays) else None
    shape = None if arrays[0].shape is None else (rows, *arrays[0].shape[1:])
    return replace(
        arrays[0], name="", shape=shape, order=Order.STACKED if len(arrays) > 1 else arrays[0].order
    )


def array_method(array: Array, name: str, args: Sequence[Value]) -> Value:
    """Return what a method of an array gives."""
    if name == "astype":
        return replace(array, itemsize=item_bytes(args[0] if args else None))
    if name == "reshape":
        return replace(
            array, shape=_reshaped(array, args[0] if args and isinstance(args[0], tuple) else args)
        )
    return array if name in {"copy", "to_numpy"} else None


def _reshaped(array: Array, dims: object) -> tuple[int | None, ...] | None:
    if not isinstance(dims, tuple | list):
        return None
    shape = tuple(map(_dimension, dims))
    # of a lone -1 in front only the number of rows is meant
    return (array.rows, *shape[1:]) if shape and shape[0] == -1 else shape


def indexed(array: Array, index: ast.expr, at: Value) -> Value:
    """Return some rows of an array."""
    if isinstance(index, ast.Slice):
        return replace(array, name="", shape=None if array.shape is None else (None, *array.shape[1:]))
    if isinstance(at, Array):
        rows = None if array.shape is None else (at.rows, *array.shape[1:])
        return replace(array, name="", shape=rows, order=at.order)
    if isinstance(index, ast.Tuple) and array.shape is not None:
        if any(map(_adds_dimension, index.elts)):
            return replace(array, name="", shape=None)
        kept = [dim for dim, one in zip(array.shape, index.elts, strict=False) if isinstance(one, ast.Slice)]
        return replace(array, name="", shape=(*kept, *array.shape[len(index.elts) :]))
    return None


def _adds_dimension(index: ast.expr) -> bool:
    """Whether an index is `None`, `np.newaxis` or the `...` that goes with it."""
    if isinstance(index, ast.Constant):
        return index.value is None or index.value is Ellipsis
    return isinstance(index, ast.Attribute) and index.attr == "newaxis"


def length_of(value: Value) -> Value:
    """Return how many rows a value has."""
    if isinstance(value, Array):
        return Length(value.name) if value.rows is None else Known(value.rows)
    return Known(len(value)) if isinstance(value, tuple) else None
