"""The trials, written once and run on every contender."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Protocol

from anybatch.cli.bench.fingerprint import Columns, fingerprint
from anybatch.cli.bench.job import Answer, Job, Trial
from anybatch.memory import PeakWatch


class Reads(Protocol):
    """Whoever can read the records of a job in batches, and stop and go on."""

    def batches(self, *, shuffled: bool) -> Iterator[Any]:
        """Open the files and return the batches of one pass."""

    def rows(self, batch: Any) -> int:
        """Return how many records a batch holds."""

    def columns(self, batch: Any) -> Columns:
        """Return a batch as plain columns."""

    def save(self, batches: Iterator[Any], folder: Path) -> None:
        """Write down where a pass stands."""

    def restore(self, batches: Iterator[Any], folder: Path) -> None:
        """Let a new pass go on where another one stood."""


def tried(contender: Reads, job: Job) -> Answer:
    """Return what one trial measures."""
    if job.trial is Trial.CONTINUED:
        return _continued(contender, job)
    return _passed(contender, job)


def _passed(contender: Reads, job: Job) -> Answer:
    """Time one whole pass, from naming the files to the last batch."""
    shuffled = job.trial is Trial.SHUFFLED
    with PeakWatch() as watch:
        begun = perf_counter()
        batches = contender.batches(shuffled=shuffled)
        records = contender.rows(next(batches))
        first_batch_seconds = perf_counter() - begun
        records += sum(map(contender.rows, batches))
        seconds = perf_counter() - begun
    proof = _fingerprint(contender, contender.batches(shuffled=shuffled), job) if job.prove else ""
    return Answer(
        records, seconds, first_batch_seconds, max(0, watch.peak_bytes - watch.before_bytes), proof=proof
    )


def _continued(contender: Reads, job: Job) -> Answer:
    """Stop a shuffled pass in the middle; time how long a new one takes to give the batch that is next."""
    stopped = contender.batches(shuffled=True)
    records = sum(map(contender.rows, islice(stopped, max(1, job.records // job.batch_size // 2))))
    with TemporaryDirectory() as folder:
        contender.save(stopped, Path(folder))
        state_bytes = sum(file.stat().st_size for file in Path(folder).iterdir())
        begun = perf_counter()
        resumed = contender.batches(shuffled=True)
        contender.restore(resumed, Path(folder))
        batch = next(resumed, None)
        seconds = perf_counter() - begun
    rest, expected = ([one] if one is not None else [] for one in (batch, next(stopped, None)))
    same = _fingerprint(contender, iter(rest), job) == _fingerprint(contender, iter(expected), job)
    return Answer(
        records,
        seconds,
        state_bytes=state_bytes,
        failure="" if same else "went on with other records than the pass that was stopped",
    )


def _fingerprint(contender: Reads, batches: Iterator[Any], job: Job) -> str:
    return fingerprint(map(contender.columns, batches), ordered=job.trial is not Trial.SHUFFLED)
