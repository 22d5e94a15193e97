"""Memory that frameworks take without a copy."""

import math

import numpy as np
from numpy.typing import DTypeLike, NDArray

ALIGNMENT_BYTES = 64


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[np.generic]:
    """Return a contiguous array with whatever was in its 64-byte-aligned memory before.

    NumPy aligns to 16 bytes only, and TensorFlow's DLPack aborts at the first operation on such memory.
    """
    kind = np.dtype(dtype)
    n_bytes = math.prod(shape) * kind.itemsize
    memory = np.empty(n_bytes + ALIGNMENT_BYTES, dtype=np.uint8)
    start = -memory.ctypes.data % ALIGNMENT_BYTES
    return memory[start : start + n_bytes].view(kind).reshape(shape)
