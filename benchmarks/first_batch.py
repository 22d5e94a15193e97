"""The first batch alone: what one waits for before training can start."""

import time
from dataclasses import dataclass

from benchmarks.attempt import BatchAttempt, Outcome, Proof
from benchmarks.job import Job


@dataclass(slots=True)
class FirstBatchAttempt:
    """Describe the pipeline over all shards and take one batch; both are on the clock."""

    job: Job
    batches: BatchAttempt

    def warm_up(self) -> None:
        """Read the first shard, unless a process that has done nothing yet is what is asked for."""
        if self.job.work == "first_batch":
            self.batches.warm_up()

    def check(self) -> Proof:
        """Return the digest of all decoded values: the first batch is one of them."""
        return self.batches.check()

    def prepare(self) -> None:
        """Forget what the contender wants forgotten; describing is on the clock."""
        self.batches.before_run()

    def run(self) -> Outcome:
        """Take one batch and touch it; the clock runs from here, or from the start of the process."""
        start = time.monotonic() if self.job.work == "first_batch" else self.job.asked_at
        batch = next(iter(self.batches.describe(self.batches.shards)))
        self.batches.touch(batch)
        return Outcome({}, time.monotonic() - start)
