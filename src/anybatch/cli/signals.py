"""Ending early without leaving anything half-written."""

import signal
import sys
from types import FrameType


def clean_up_when_told_to_end() -> None:
    """Turn the signals that end a process into exceptions, so that temporary files are removed.

    One that is ignored stays so: `nohup` asks for that.
    """
    for number, then in ((signal.SIGINT, _interrupted), (signal.SIGTERM, _ended), (signal.SIGHUP, _ended)):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, then)


def _interrupted(number: int, _: FrameType | None) -> None:
    _ignore_more()
    raise KeyboardInterrupt


def _ended(number: int, _: FrameType | None) -> None:
    _ignore_more()
    sys.exit(128 + number)


def _ignore_more() -> None:
    # a second Ctrl-C would stop the cleaning up, and that takes no longer than one slice of work
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
