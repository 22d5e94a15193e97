"""What a progress bar and a log tell of training besides its metrics: how fast it is, and what it holds."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anybatch.train.memories import Memory
from anybatch.units import count, size


@dataclass(frozen=True, slots=True)
class Level:
    """How full one memory is; the host's has no name."""

    name: str
    held_bytes: int
    limit_bytes: int


@dataclass(frozen=True, slots=True)
class Reading:
    """How training stands at one moment; what is not known is None."""

    samples_per_second: float | None
    parts: int | None
    levels: tuple[Level, ...]

    def words(self) -> dict[str, str]:
        """Return all that is known, as people read it.

        >>> Reading(41234.5, 4, (Level("", 3 << 29, 2 << 30),)).words()
        {'parts': '4', 'memory': '1.5 GiB of 2 GiB', 'samples/s': '41,234'}
        """
        rate = {} if self.samples_per_second is None else {"samples/s": _rate(self.samples_per_second)}
        parts = {} if self.parts is None else {"parts": str(self.parts)}
        held = {
            level.name or "memory": f"{size(level.held_bytes)} of {size(level.limit_bytes)}"
            for level in self.levels
        }
        # the rate comes last, because it comes late: a bar adds what it learns at its end
        return {**parts, **held, **rate}


def _rate(samples_per_second: float) -> str:
    return count(int(samples_per_second)) if samples_per_second >= 10 else f"{samples_per_second:.2f}"


class Gauge:
    """Looks at one training: its memories, and into how many parts batches are cut just now."""

    def __init__(
        self, memories: Sequence[Memory], batch_size: int | None, largest_part: Callable[[], int | None]
    ) -> None:
        self._memories = memories
        self._batch_size = batch_size
        self._largest_part = largest_part

    def reading(self, batches_per_second: float | None) -> Reading:
        """Look. One small read per memory."""
        batch, per_second = self._batch_size, batches_per_second
        levels = tuple(Level(one.name, one.held_bytes(), one.limit_bytes) for one in self._memories)
        return Reading(batch and per_second and batch * per_second, self._parts(), levels)

    def _parts(self) -> int | None:
        largest = self._largest_part()
        return None if self._batch_size is None else -(-self._batch_size // (largest or self._batch_size))


class Pace:
    """Batches per second since the first one of an epoch, which is slow: it is traced.

    >>> seconds = iter([10.0, 10.5, 11.0])
    >>> pace = Pace(lambda: next(seconds))
    >>> [pace.at(batches) for batches in (1, 2, 3)]
    [None, 2.0, 2.0]
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._first: tuple[int, float] | None = None

    def at(self, batches: int) -> float | None:
        """Return the pace when so many batches of the epoch are done; None at the first of them."""
        now = self._clock()
        if self._first is None:
            self._first = batches, now
        done, since = batches - self._first[0], now - self._first[1]
        return done / since if done > 0 and since > 0 else None
