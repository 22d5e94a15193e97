"""When to save: seldom enough to cost little."""

from collections.abc import Callable

LEAST_SECONDS = 5.0
COST_FRACTION = 0.01
"""What saving may take of the time, the background's share included: it works on the same processors."""


class Cadence:
    """Knows how long the last save took, and waits a hundred times as long before the next."""

    def __init__(self, clock: Callable[[], float], *, least_seconds: float = LEAST_SECONDS) -> None:
        self._clock = clock
        self._least_seconds = least_seconds
        self._began: float | None = None
        self._next = clock() + least_seconds

    def due(self) -> bool:
        """Whether enough time has passed."""
        return self._clock() >= self._next

    def began(self) -> None:
        """A save begins, unless one is under way."""
        if self._began is None:
            self._began = self._clock()

    def ended(self) -> None:
        """It is on the disk, or has failed."""
        now = self._clock()
        took = 0.0 if self._began is None else now - self._began
        self._next, self._began = now + interval_seconds(took, self._least_seconds), None


def interval_seconds(cost_seconds: float, least_seconds: float = LEAST_SECONDS) -> float:
    """Return how long to wait after a save that took so long.

    >>> interval_seconds(0.01), interval_seconds(2.0)
    (5.0, 198.0)
    """
    return max(least_seconds, cost_seconds * (1 / COST_FRACTION - 1))
