"""Memory that frameworks take without a copy."""

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

ALIGNMENT_BYTES = 64


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[np.generic]:
    """Return a contiguous array with whatever was in its 64-byte-aligned memory before.

    NumPy aligns to 16 bytes only, and TensorFlow's DLPack aborts at the first operation on such memory.
    """
    kind = np.dtype(dtype)
    if kind.hasobject:
        # no framework takes those; and memory that was no object before cannot become one
        return np.empty(shape, kind)
    n_bytes = math.prod(shape) * kind.itemsize
    memory = np.empty(n_bytes + ALIGNMENT_BYTES, dtype=np.uint8)
    start = -_address(memory) % ALIGNMENT_BYTES
    return memory[start : start + n_bytes].view(kind).reshape(shape)


def aligned_copy(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of an array in contiguous aligned memory."""
    copy = aligned_empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def aligned_rows(array: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """Return a copy of some rows, which have to exist, in the order given, in aligned memory."""
    copy = aligned_empty((len(rows), *array.shape[1:]), array.dtype)
    # mode="raise" would go through a buffer as large as the copy
    return np.take(array, rows, axis=0, out=copy, mode="clip")


def is_aligned(array: NDArray[Any]) -> bool:
    """Return whether frameworks can take an array as it lies: contiguous, aligned, theirs to hold."""
    flags = array.flags
    # not `.ctypes`, which takes half as long again
    return flags.c_contiguous and flags.writeable and _address(array) % ALIGNMENT_BYTES == 0


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
