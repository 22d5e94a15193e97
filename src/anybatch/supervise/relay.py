"""Signals on their way through the supervisor to the child."""

import os
import select
import signal
import sys
from types import FrameType, TracebackType
from typing import Self

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
_FROM_KEYBOARD = frozenset({signal.SIGINT, signal.SIGQUIT})


class Relay:
    """Collects signals instead of obeying them; waiting ends early when one comes, or a child ends."""

    def __init__(self) -> None:
        self._came: list[int] = []
        self._before: dict[int, object] = {}
        self._woken, self._wakes = os.pipe()

    def __enter__(self) -> Self:
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wakes, False)
        signal.set_wakeup_fd(self._wakes, warn_on_full_buffer=False)
        # what is ignored stays so, for the child as well: `nohup` asks for that
        heard = [number for number in _PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN]
        for number in (*heard, signal.SIGCHLD):
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type] # as it was given to us
        signal.set_wakeup_fd(-1)
        os.close(self._woken)
        os.close(self._wakes)

    def _note(self, number: int, _: FrameType | None) -> None:
        if number != signal.SIGCHLD:
            self._came.append(number)

    def wait(self, seconds: float) -> None:
        """Sleep for a time, or until a signal comes."""
        if select.select([self._woken], [], [], seconds)[0]:
            os.read(self._woken, 4096)

    def taken(self) -> list[int]:
        """Return the signals that came since the last call."""
        came, self._came = self._came, []
        return came


def reached_the_child_already(number: int) -> bool:
    """Whether a signal came from the keyboard: the terminal sends it to the child as well."""
    if number not in _FROM_KEYBOARD:
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError, AttributeError):
        return False
