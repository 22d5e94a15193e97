"""Native work on several threads at once."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def on_threads(make: Callable[[Given], Made], given: Iterable[Given]) -> Iterator[Made]:
    """Yield `make(each)` in order, for work that is native and lets other threads run."""
    pool = ThreadPoolExecutor(usable_cores(), thread_name_prefix="anybatch")
    try:
        yield from pool.map(make, given)
    finally:
        # after Ctrl-C: what is under way ends with its next slice, the rest never starts
        pool.shutdown(wait=True, cancel_futures=True)
