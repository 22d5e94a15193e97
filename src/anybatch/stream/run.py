"""What is decided when a stream is opened, as opposed to described."""

from dataclasses import dataclass, field, replace
from typing import Any

from anybatch.records import usable_cores

DEFAULT_LIMIT_BYTES = 512 << 20
DEFAULT_ROWS = 256


@dataclass(frozen=True, slots=True)
class Run:
    """One pass over a stream: its epoch, its limits, and who keeps count."""

    epoch: int = 0
    limit_bytes: int = DEFAULT_LIMIT_BYTES
    rows: int = DEFAULT_ROWS
    threads: int = field(default_factory=usable_cores)
    meters: Any = None

    def at_epoch(self, epoch: int) -> "Run":
        """Return the same run in another epoch."""
        return replace(self, epoch=epoch)

    def by(self, rows: int) -> "Run":
        """Return the same run that would like its rows so many at a time."""
        return replace(self, rows=rows)
