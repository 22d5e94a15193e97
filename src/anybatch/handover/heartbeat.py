"""Signs of life from a training child."""

import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from anybatch.handover.orders import own_papers
from anybatch.handover.sealed import read_sealed, write_sealed

_FILE = "heartbeat.json"
_EVERY_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Pulse:
    """Where training stands."""

    step: int = 0
    """Updates made since training began, over all attempts."""
    epoch: int = 0
    batch_size: int = 0
    part: int = 0
    """The largest part of a batch in use."""
    held_bytes: int = 0
    training: bool = True
    """False once `fit` has returned: from then on silence is no hang."""
    planning: bool = False
    """Whether this comes from a trial before training, of parts as large as `part`; 0 when they are over."""
    beat: int = 0

    @property
    def reached_fit(self) -> bool:
        """Whether this is training, or a trial for it: trials that are over may have been `ab.plan`'s."""
        return self.part > 0 or not self.planning


class Heartbeat:
    """Writes a pulse, at most twice a second; does nothing in a process that nobody supervises.

    >>> Heartbeat(None).beat(Pulse(step=1))
    """

    def __init__(self, folder: Path | None) -> None:
        self._file = None if folder is None else folder / _FILE
        self._beats = 0
        self._next = 0.0

    @classmethod
    def of_this_process(cls) -> "Heartbeat":
        """Return the heartbeat that the supervisor of this process listens to."""
        return cls(own_papers())

    @property
    def heard(self) -> bool:
        """Whether somebody supervises this process."""
        return self._file is not None

    def due(self) -> bool:
        """Whether the next beat would be written. One look at the clock: cheap enough for every part."""
        return self._file is not None and time.monotonic() >= self._next

    def beat(self, pulse: Pulse, *, now: bool = False) -> None:
        """Say where training stands. `now`: even if the last time was a moment ago."""
        if self._file is None or not (now or self.due()):
            return
        self._next = time.monotonic() + _EVERY_SECONDS
        self._beats += 1
        # a full disk must not end training for a sign of life
        with suppress(OSError):
            write_sealed(self._file, asdict(pulse) | {"beat": self._beats}, durable=False)


def read_pulse(folder: Path) -> Pulse | None:
    """Return the last pulse; None before the first, or if it cannot be read."""
    found = read_sealed(folder / _FILE)
    try:
        return None if found is None else Pulse(**found)
    except TypeError:
        return None


def forget_pulse(folder: Path) -> None:
    """Remove the last pulse, so that it is not taken for one of the next attempt."""
    (folder / _FILE).unlink(missing_ok=True)
