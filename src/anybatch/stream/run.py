"""What is decided when a stream is opened, as opposed to described."""

from dataclasses import dataclass, field, replace

from anybatch.records import usable_cores
from anybatch.stream.meters import Meters

DEFAULT_LIMIT_BYTES = 512 << 20
DEFAULT_ROWS = 256


@dataclass(frozen=True, slots=True)
class Run:
    """One pass over a stream: its epoch, its limits, and who keeps count.

    `rows` make a batch, of which chunks are whole parts; no chunk has more than `most_rows` rows or, as
    far as that can be told before, more than `chunk_bytes`. `in_parts`: chunks are parts of batches that are
    never put together, and even one without rows comes if it ends its batch. `most_ahead` and
    `most_cached_bytes`: what whoever supervises this process allows, None where nobody does. `swept_bytes`:
    how much of the limit may be held to read ahead in sweeps; None: as much as serves.
    """

    epoch: int = 0
    limit_bytes: int = DEFAULT_LIMIT_BYTES
    chunk_bytes: int = DEFAULT_LIMIT_BYTES
    rows: int = DEFAULT_ROWS
    most_rows: int = DEFAULT_ROWS
    in_parts: bool = False
    most_ahead: int | None = None
    most_cached_bytes: int | None = None
    swept_bytes: int | None = None
    threads: int = field(default_factory=usable_cores)
    meters: Meters = field(default_factory=Meters)

    def at_epoch(self, epoch: int) -> "Run":
        """Return the same run in another epoch."""
        return replace(self, epoch=epoch)

    def by(self, rows: int, *, most: int | None = None) -> "Run":
        """Return the same run that makes batches of so many rows, in parts of `most`."""
        most_rows = rows if most is None else min(most, rows)
        return replace(self, rows=rows, most_rows=most_rows, in_parts=most is not None)

    def ahead(self, wanted: int) -> int:
        """Return how many batches to make ahead where so many would serve."""
        return wanted if self.most_ahead is None else min(wanted, self.most_ahead)

    def cached_bytes(self, wanted: int) -> int:
        """Return how much a cache may keep in memory where so much would fit."""
        return wanted if self.most_cached_bytes is None else min(wanted, self.most_cached_bytes)

    def limited(self, limit_bytes: int) -> "Run":
        """Return the same run under a limit that is no higher."""
        return replace(self, limit_bytes=min(self.limit_bytes, limit_bytes))

    def share(self, own: int, below: int, *, chunks: int, reserved: int = 0) -> tuple[int, "Run"]:
        """Return the bytes of a stage that weighs `own` against `below`, and the run of what is below it.

        The stage holds up to `chunks` chunks at a time, so that none of them may be larger than its part.
        What is `reserved` stays for what is below.
        """
        share = max(0, self.limit_bytes - reserved) * own // (own + below)
        chunk_bytes = min(self.chunk_bytes, share // chunks)
        return share, replace(self, limit_bytes=self.limit_bytes - share, chunk_bytes=chunk_bytes)
