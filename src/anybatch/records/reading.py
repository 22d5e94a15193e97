"""A native reader at work, and the account that somebody may keep of it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from anybatch._native import Batch, Index, Reader


class Meter(Protocol):
    """Whoever wants to know what reading holds and how long it is waited for."""

    live_bytes: Callable[[], int] | None
    seconds_waited: float


@dataclass(frozen=True, slots=True)
class Bounds:
    """What reading may use, and who keeps account of it. None: as the machine and the batch are."""

    most: int | None = None
    """How many records come at a time; fewer than a batch where that would be too large."""
    threads: int | None = None
    ahead: int | None = None
    """How many batches may be made ahead."""
    limit_bytes: int = 256 << 20
    cached_bytes: int | None = None
    """What the page cache can hold of the shards."""
    swept_bytes: int | None = None
    """How much of the limit may go to records that are swept up ahead, where it holds only some."""
    meter: Meter | None = None


class Reading:
    """Batches from a native reader. Closing ends its threads, even while an exception holds on to this."""

    def __init__(self, reader: Reader, meter: Meter | None) -> None:
        self._reader: Reader | None = reader
        self._meter = meter
        if meter is not None:
            meter.live_bytes = self._held_bytes

    def batches(self) -> Iterator[Batch]:
        """Yield what the reader gives, to its end or until this is closed."""
        while self._reader is not None:
            start = time.perf_counter()
            batch = self._reader.next()
            if self._meter is not None:
                self._meter.seconds_waited += time.perf_counter() - start
            if batch is None:
                return
            yield batch

    def learnt(self) -> list[tuple[int, Index]]:
        """Return the indexes of shards that were walked to their end since the last call."""
        return [] if self._reader is None else self._reader.learnt()

    def close(self) -> None:
        """End the threads."""
        self._reader = None

    def _held_bytes(self) -> int:
        return 0 if self._reader is None else sum(self._reader.stats()[:2])
