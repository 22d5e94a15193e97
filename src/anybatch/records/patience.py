"""Say how far work has come that the user did not ask for by name: a first index of much data."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import TextIO

from anybatch.units import size

SILENT_SECONDS = 2.0
"""Most work is done by then, and nobody has begun to wonder."""
_LINE_SECONDS, _LOG_SECONDS = 0.2, 30.0
_ERASE_LINE = "\r\x1b[K"
_log = logging.getLogger("anybatch")


@contextmanager
def patience(what: str, total_bytes: int, *, stream: TextIO | None = None) -> Iterator[Callable[[int], None]]:
    """Give a function to be told how many more bytes are done.

    On a terminal one line tells how far it is, and vanishes at the end; elsewhere the log has a line now and
    then, at level INFO.
    """
    teller = _Teller(what, total_bytes, stream or sys.stderr)
    try:
        yield teller.advance
    finally:
        teller.finish()


class _Teller:
    def __init__(self, what: str, total_bytes: int, stream: TextIO) -> None:
        self._what, self._total_bytes, self._stream = what, total_bytes, stream
        self._shown = stream.isatty()
        self._done_bytes = 0
        self._said = False
        self._next = monotonic() + SILENT_SECONDS
        # several shards are read at a time
        self._lock = Lock()

    def advance(self, more_bytes: int) -> None:
        with self._lock:
            self._done_bytes += more_bytes
            if monotonic() >= self._next:
                self._tell()

    def finish(self) -> None:
        if self._said and self._shown:
            print(_ERASE_LINE, end="", file=self._stream, flush=True)

    def _tell(self) -> None:
        share = self._done_bytes / max(1, self._total_bytes)
        line = f"{self._what}: {size(self._done_bytes)} of {size(self._total_bytes)}, {share:.0%}"
        if self._shown:
            print(f"{_ERASE_LINE}{line}", end="", file=self._stream, flush=True)
        else:
            _log.info("%s", line)
        self._said = True
        self._next = monotonic() + (_LINE_SECONDS if self._shown else _LOG_SECONDS)
