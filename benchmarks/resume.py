"""Going on in the middle of an epoch, where another process stopped."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from benchmarks.attempt import BatchAttempt, Outcome, Proof
from benchmarks.digest import Digest
from benchmarks.job import Job


@dataclass(frozen=True, slots=True)
class Saved:
    """Where an iterator stands, and how many bytes have to be kept to know it."""

    state: Any
    size_bytes: int


@dataclass(slots=True)
class ResumeAttempt:
    """Stop half-way and save; describing anew, restoring and one batch are on the clock."""

    batches: BatchAttempt
    stop_after: int
    save: Callable[[Iterator[Any], int], Saved]  # also gets how many batches were taken
    restore: Callable[[Iterable[Any], Any], Iterator[Any]]
    _saved: Saved | None = None

    def warm_up(self) -> None:
        """Read the first shard."""
        self.batches.warm_up()

    def check(self) -> Proof:
        """Return the digest of the batches before the stop and of those after it, in a new iterator."""
        digest = Digest()
        before = iter(self._described())
        for batch in islice(before, self.stop_after):
            digest.add(self.batches.columns(batch))
        saved = self.save(before, self.stop_after)
        for batch in self.restore(self._described(), saved.state):
            digest.add(self.batches.columns(batch))
        return digest.as_json()

    def prepare(self) -> None:
        """Take half of the batches, as training would have, and save."""
        before = iter(self._described())
        for batch in islice(before, self.stop_after):
            self.batches.touch(batch)
        self._saved = self.save(before, self.stop_after)

    def run(self) -> Outcome:
        """Go on there and take one batch."""
        assert self._saved is not None
        start = time.perf_counter()
        batch = next(self.restore(self._described(), self._saved.state))
        self.batches.touch(batch)
        return Outcome({}, time.perf_counter() - start, state_bytes=self._saved.size_bytes)

    def _described(self) -> Iterable[Any]:
        return self.batches.describe(self.batches.shards)


def half_of(job: Job) -> int:
    """Return how many batches are half of the epoch."""
    return job.records // job.batch // 2
