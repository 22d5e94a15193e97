"""What a contender's `build` returns in the child, and the loop that times batches."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from benchmarks.datasets import DATASETS, Field
from benchmarks.digest import Columns, Digest
from benchmarks.job import Job

Proof = dict[str, Any]
SHUFFLE_RECORDS = 10_000
"""The shuffling buffer of everybody who needs one."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a timed run saw while it ran."""

    proof: Proof
    first_batch_seconds: float | None = None
    seconds: float | None = None  # by the contender's own clock, where not all of the run is the work
    later_rate: float | None = None  # records/s behind the first batch, where that one takes much longer
    state_bytes: int | None = None
    weights_difference: float | None = None
    updates: int | None = None
    ended: str = ""
    peak_anonymous_bytes: int | None = None  # where the work is done by a process of its own


class Attempt(Protocol):
    """One contender at one job. Only `run` is on the clock."""

    def warm_up(self) -> None:
        """Do a small part of the work, so that nothing is done for the first time later."""

    def check(self) -> Proof:
        """Do all the work once and return what proves that it was done right."""

    def prepare(self) -> None:
        """Describe the work without starting it."""

    def run(self) -> Outcome:
        """Do all the work."""


@dataclass(slots=True)
class BatchAttempt:
    """Iterate over all batches, whoever makes them."""

    shards: Sequence[str]
    describe: Callable[[Sequence[str]], Iterable[Any]]
    touch: Callable[[Any], int]  # looks at one value of the batch and returns its rows
    columns: Callable[[Any], Columns]  # everything in the batch, as NumPy
    before_run: Callable[[], None] = lambda: None
    _described: Iterable[Any] = ()

    def warm_up(self) -> None:
        """Read the first shard."""
        for batch in self.describe(self.shards[:1]):
            self.touch(batch)

    def check(self) -> Proof:
        """Return the digest of all decoded values."""
        digest = Digest()
        for batch in self.describe(self.shards):
            digest.add(self.columns(batch))
        return digest.as_json()

    def prepare(self) -> None:
        """Describe the pipeline; tracing it is not on the clock."""
        self.before_run()
        self._described = self.describe(self.shards)

    def run(self) -> Outcome:
        """Take every batch and touch it."""
        records, first = 0, None
        start = time.perf_counter()
        for batch in self._described:
            if first is None:
                first = time.perf_counter() - start
            records += self.touch(batch)
        return Outcome({"records": records}, first)


@dataclass(slots=True)
class CallAttempt:
    """Call a function on the shards; it returns what it can prove."""

    shards: Sequence[str]
    call: Callable[[Sequence[str]], Proof]

    def warm_up(self) -> None:
        """Call it on the first shard."""
        self.call(self.shards[:1])

    def check(self) -> Proof:
        """Return what the call proves."""
        return self.call(self.shards)

    def prepare(self) -> None:
        """Nothing to describe."""

    def run(self) -> Outcome:
        """Call it."""
        return Outcome(self.call(self.shards))


def touch(batch: Mapping[str, Any]) -> int:
    """Look at one label; return how many rows there are."""
    labels = np.asarray(batch["label"])
    int(labels[0])
    return len(labels)


def fields_of(job: Job) -> tuple[Field, ...]:
    """Return the features of the records that the job reads."""
    return DATASETS[job.dataset].fields
