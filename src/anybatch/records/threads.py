"""Native work on several threads at once."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")

_worker = threading.local()


class Each(Protocol):
    """Whoever does some work on each of several things and gives the results in their order."""

    def __call__(self, make: Callable[[Given], Made], given: Iterable[Given], /) -> Iterator[Made]:
        """Yield `make(each)` in order."""


class Abandoned(Exception):
    """Ends the work of a thread for which nobody waits any more."""


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def on_threads(make: Callable[[Given], Made], given: Iterable[Given]) -> Iterator[Made]:
    """Yield `make(each)` in order, for work that is native and lets other threads run."""
    stop, at_work = threading.Event(), list[threading.Thread]()

    def begin() -> None:
        at_work.append(threading.current_thread())
        work_until(stop)

    pool = ThreadPoolExecutor(usable_cores(), thread_name_prefix="anybatch", initializer=begin)
    try:
        yield from pool.map(make, given)
    finally:
        # after Ctrl-C or an error: what is under way ends at its next `give_way`, the rest never starts
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
        # a signal that comes while the pool starts a thread makes the pool forget that thread
        for thread in at_work:
            thread.join()


def give_way() -> None:
    """Raise `Abandoned` if this thread works for nobody any more. Long work calls it slice by slice."""
    stop = getattr(_worker, "stop", None)
    if stop is not None and stop.is_set():
        raise Abandoned


def work_until(stop: threading.Event) -> None:
    """Make `give_way` end the work of this thread once `stop` is set."""
    _worker.stop = stop
