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
        self._began = clock()
        self._next = self._began + least_seconds

    def due(self) -> bool:
        """Whether enough time has passed."""
        return self._clock() >= self._next

    def began(self) -> None:
        """A save begins."""
        self._began = self._clock()

    def ended(self) -> None:
        """It is on the disk."""
        now = self._clock()
        self._next = now + interval_seconds(now - self._began, self._least_seconds)


def interval_seconds(cost_seconds: float, least_seconds: float = LEAST_SECONDS) -> float:
    """Return how long to wait after a save that took so long.

    >>> interval_seconds(0.01), interval_seconds(2.0)
    (5.0, 198.0)
    """
    return max(least_seconds, cost_seconds * (1 / COST_FRACTION - 1))
