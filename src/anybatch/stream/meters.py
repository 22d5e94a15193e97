"""What a run holds and waits for, stage by stage, while it runs."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Meter:
    """One stage's account."""

    stage: str
    bound_bytes: int
    held_bytes: int = 0
    peak_bytes: int = 0
    elements: int = 0
    seconds_waited: float = 0.0
    live_bytes: Callable[[], int] | None = None

    def hold(self, n_bytes: int) -> None:
        """Note that the stage holds so many bytes more, or less."""
        self.held_bytes += n_bytes
        self.peak_bytes = max(self.peak_bytes, self.held_bytes)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time that whoever comes next waits for this stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds_waited += time.perf_counter() - start


@dataclass
class Meters:
    """The accounts of all stages of a run, the source last."""

    stages: list[Meter] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def meter(self, stage: str, bound_bytes: int) -> Meter:
        """Return a new account."""
        with self._lock:
            meter = Meter(stage, bound_bytes)
            self.stages.append(meter)
            return meter
