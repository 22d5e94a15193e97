"""The C library's allocator, told to give memory back.

With its defaults it keeps freed blocks, and how many depends on the order of everything before: the same
training step peaked at 411 to 477 MiB above its base, and at 337 to 338 MiB once blocks from 1 MiB on came
from the system. That has its price, fresh pages for every step: 20 to 50 % of the time of small models. So it
is for those who need the memory.
"""

import ctypes
import os
import sys
from functools import cache

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

LARGE_BLOCK_BYTES = 1 << 20
KEPT_BLOCK_BYTES = 32 << 20
"""The largest block that glibc ever keeps; left alone, it comes to that by itself."""
KEPT_FACTOR = 1.5
"""How much more a step may take when freed blocks are kept: 1.42 was the most that was seen."""
ARENAS = 2
THRESHOLD_VARIABLE = "MALLOC_MMAP_THRESHOLD_"
ARENAS_VARIABLE = "MALLOC_ARENA_MAX"
POOL_VARIABLE = "TF_ONEDNN_USE_SYSTEM_ALLOCATOR"
"""Read by TensorFlow, whose tensors come from a pool with oneDNN: one that gives nothing back, in pieces that
another size of a part cannot use."""


def make_peaks_predictable() -> bool:
    """Let large blocks come from the system and go back to it; False where there is no glibc.

    What the user has set by environment variable stays as it is.
    """
    library = _glibc()
    if library is None:
        return False
    if THRESHOLD_VARIABLE not in os.environ:
        library.mallopt(_M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)
        # large blocks that were freed before have raised this one up to 64 MiB
        library.mallopt(_M_TRIM_THRESHOLD, 2 * LARGE_BLOCK_BYTES)
    if ARENAS_VARIABLE not in os.environ:
        library.mallopt(_M_ARENA_MAX, ARENAS)
    return True


def keep_freed_blocks() -> None:
    """Let freed blocks serve the next step: faster, and in up to `KEPT_FACTOR` times the memory."""
    library = _glibc()
    if library is not None and THRESHOLD_VARIABLE not in os.environ:
        library.mallopt(_M_MMAP_THRESHOLD, KEPT_BLOCK_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, 2 * KEPT_BLOCK_BYTES)


def give_back_freed() -> bool:
    """Return freed memory to the system; whether there was any. Walks the heap: milliseconds per GB."""
    library = _glibc()
    return library is not None and bool(library.malloc_trim(0))


def predictable_environment() -> dict[str, str]:
    """Return the variables that have the same effect on a process from its very start, and on its tensors."""
    return {
        THRESHOLD_VARIABLE: str(LARGE_BLOCK_BYTES),
        ARENAS_VARIABLE: str(ARENAS),
        POOL_VARIABLE: "true",
    }


@cache
def _glibc() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
