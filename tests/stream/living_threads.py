"""Which threads work for streams, and that none is left."""

import contextlib
import threading
import time
from pathlib import Path


def our_threads():
    """Return the names of all threads that work for streams, Python's and native ones."""
    native = []
    for task in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            native.append(task.read_text().strip())
    python = [thread.name for thread in threading.enumerate()]
    return [name for name in native + python if name.startswith("anybatch")]


def check_no_thread_is_left():
    deadline = time.monotonic() + 1
    while our_threads() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert our_threads() == []
