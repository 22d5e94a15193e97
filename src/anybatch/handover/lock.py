"""One writer per folder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FILE = "lock"


class Occupied(Exception):
    """Another process holds the folder."""


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold a folder for this process; the kernel gives it back even if the process is killed."""
    handle = os.open(folder / _FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Occupied(str(folder)) from None
        yield
    finally:
        os.close(handle)
