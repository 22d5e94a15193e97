"""Dtypes, shapes and defaults of features: checked once, kept as plain values."""

import math
import reprlib
from operator import index
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anybatch.errors import BadFeature

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = (*FLOATS, *INTEGERS, "bool")
BYTES = "bytes"
IMAGE_CHANNELS = (1, 3, 4)

_TEXT = ("bytes", "string", "str")
_LARGEST_ITEM_BYTES = 2**31 - 1  # protobuf's own limit

Shape: TypeAlias = tuple[int, ...]


def short(value: Any) -> str:
    """Return a value as it is written, cut to fit on one line."""
    return " ".join(reprlib.repr(value).split())


def dtype_name(dtype: Any) -> str | None:
    """Return NumPy's name of a dtype, "bytes" for strings, or None if there is no such dtype.

    Takes names, Python and NumPy types, and TensorFlow's DType, which has both attributes asked for.
    """
    if hasattr(dtype, "as_numpy_dtype") and hasattr(dtype, "name"):
        dtype = dtype.name
    if isinstance(dtype, str) and dtype in _TEXT:
        return BYTES
    # np.dtype takes None as float64 and an array as the dtype of its values
    if dtype is None or (hasattr(dtype, "__array__") and not isinstance(dtype, type)):
        return None
    try:
        known = np.dtype(dtype)
    except (TypeError, ValueError):
        return None
    name = BYTES if known.name in _TEXT else known.name
    return name if known.isnative and name in (*NUMBERS, BYTES) else None


def number_dtype(kind: str, dtype: Any) -> str:
    """Return the name of a dtype of numbers."""
    name = dtype_name(dtype)
    if name == BYTES:
        raise BadFeature(
            kind, f"{short(dtype)} is no dtype of numbers; Bytes() or Ragged('bytes') reads bytes"
        )
    if name is None:
        raise BadFeature(kind, f"{short(dtype)} is no dtype it can have; use one of {', '.join(NUMBERS)}")
    return name


def any_dtype(kind: str, dtype: Any) -> str:
    """Return the name of a dtype of numbers, or "bytes"."""
    return BYTES if dtype_name(dtype) == BYTES else number_dtype(kind, dtype)


_ANY_LENGTH = "Ragged(dtype) reads lists of any length"
_ANY_SIZE = {
    "Raw": "Bytes() reads values of any length, of which np.frombuffer makes arrays in map",
    "Image": "every image is resized to one size; Bytes() reads the files as they are, for a decoder in map",
}
"""What reads values whose size is not known before."""


def fixed_shape(kind: str, shape: Any, *, dtype: str, empty: bool = True) -> Shape:
    """Return a shape as a tuple of known dimensions; `empty` says whether one of them may be 0."""
    dims = _dims(shape)
    if dims is None:
        problem = f"{short(shape)} is no shape; write a tuple of sizes, as in (28, 28, 1)"
        raise BadFeature(kind, problem)
    if any(dim is None or dim < 0 for dim in dims):
        problem = f"shape {dims} has a size that is not known; {_ANY_SIZE.get(kind, _ANY_LENGTH)}"
        raise BadFeature(kind, problem)
    known = tuple(dim for dim in dims if dim is not None)
    if not empty and 0 in known:
        raise BadFeature(kind, f"shape {known} holds 0 values; every size must be 1 or more")
    if item_bytes(dtype, known) > _LARGEST_ITEM_BYTES:
        needed = f"shape {known} needs {item_bytes(dtype, known):,} bytes"
        raise BadFeature(kind, f"{needed}; a record has {_LARGEST_ITEM_BYTES:,} at most, check the sizes")
    return known


def _dims(shape: Any) -> tuple[int | None, ...] | None:
    try:
        dims = (shape,) if hasattr(shape, "__index__") and not np.ndim(shape) else tuple(shape)
        return tuple(None if dim is None else _dim(dim) for dim in dims)
    except (TypeError, ValueError):
        return None


def _dim(dim: Any) -> int:
    if isinstance(dim, bool):
        raise TypeError
    return index(dim)


def item_bytes(dtype: str, shape: Shape) -> int:
    """Return the bytes of one item of numbers; of bytes values, how many there are."""
    return math.prod(shape) * (1 if dtype == BYTES else np.dtype(dtype).itemsize)


def cast_exactly(values: Any, dtype: str) -> NDArray[Any] | None:
    """Return numbers as an array of a dtype, or None if one of them does not fit."""
    try:
        # integers as objects: NumPy would make floats of [0, 2**63]
        given = np.asarray(values, dtype=object if dtype in INTEGERS else None)
    except (TypeError, ValueError, NotImplementedError):
        return None
    if given.size and not _fits(given, dtype):
        return None
    # a float of more digits is rounded, as everywhere
    with np.errstate(over="ignore"):
        return given.astype(dtype)


def _fits(given: NDArray[Any], dtype: str) -> bool:
    if dtype in FLOATS:
        return given.dtype.kind in "iuf" and _stays_finite(given, dtype)
    if dtype in INTEGERS:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        return all(_is_integer(value) and low <= int(value) <= high for value in given.flat)
    return given.dtype.kind == "b" or (given.dtype.kind in "iu" and bool(np.isin(given, (0, 1)).all()))


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _stays_finite(given: NDArray[Any], dtype: str) -> bool:
    with np.errstate(over="ignore"):
        return not bool(np.any(np.isinf(given.astype(dtype)) & np.isfinite(given)))


def plain_numbers(kind: str, default: Any, *, dtype: str, shape: Shape) -> Any:
    """Return a default as a Python number or nested tuples of them."""
    fitting = cast_exactly(default, dtype)
    if fitting is None:
        raise BadFeature(kind, f"the default {short(default)} does not fit {dtype}; give a value that does")
    _check_broadcast(kind, default, fitting.shape, shape)
    return _nested(fitting)


def plain_bytes(kind: str, default: Any, *, shape: Shape) -> Any:
    """Return a default as bytes or nested tuples of them; text becomes UTF-8."""
    # dtype=object: a NumPy string would lose the zero bytes at its end
    given = np.asarray(default, dtype=object)
    values = [value.encode() if isinstance(value, str) else value for value in given.flat]
    if not all(isinstance(value, bytes) for value in values):
        raise BadFeature(kind, f"the default {short(default)} is not bytes; write it as in b'missing'")
    _check_broadcast(kind, default, given.shape, shape)
    return _nested(objects(values, given.shape))


def objects(values: list[Any], shape: Shape) -> NDArray[Any]:
    """Return an array of Python objects."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(shape)


def _check_broadcast(kind: str, default: Any, given: Shape, shape: Shape) -> None:
    try:
        fits = np.broadcast_shapes(given, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        problem = (
            f"the default {short(default)} of shape {given} does not fill {shape}; give one value or {shape}"
        )
        raise BadFeature(kind, problem)


def _nested(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return tuple(_nested(part) for part in value) if value.ndim else _nested(value[()])
    if isinstance(value, np.floating):
        # through text: the shortest decimal that gives back the same float32, so 0.1 stays 0.1
        return float(str(value))
    return value.item() if isinstance(value, np.generic) else value
