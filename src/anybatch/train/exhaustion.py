"""Which exceptions mean that memory ran out."""

import re

_NAMES = {"ResourceExhaustedError", "OutOfMemoryError"}
"""TensorFlow's and PyTorch's, by name: no framework is imported to recognise its errors."""

_TEXTS = (
    "failed to allocate",
    "dst tensor is not initialized",
    "cuda_error_out_of_memory",
    "cublas_status_alloc_failed",
    "resource_exhausted",
    "out of memory",
)
_TELLING = re.compile(r"\bOOM\b|\balloc|\bmemory\b", re.IGNORECASE)

_SPEAKING = {"InternalError", "UnknownError", "XlaRuntimeError", "JaxRuntimeError", "RuntimeError"}
"""Errors of many causes: only their text tells."""


def is_exhaustion(error: BaseException) -> bool:
    """Return whether an exception says that an allocation failed.

    >>> is_exhaustion(MemoryError()), is_exhaustion(ValueError("failed to allocate"))
    (True, False)
    """
    if isinstance(error, MemoryError):
        return True
    names = {cls.__name__ for cls in type(error).__mro__}
    if names & _NAMES:
        return True
    return bool(names & _SPEAKING) and any(text in str(error).lower() for text in _TEXTS)


def in_one_line(error: BaseException) -> str:
    """Return what an exception says of memory, short enough for one line of a log."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    telling = [line for line in lines if _TELLING.search(line)]
    return (telling or lines)[0][:200]
