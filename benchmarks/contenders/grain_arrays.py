"""Grain over ArrayRecord: the format of its own, which it can read at any place and shuffle exactly."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import grain

from benchmarks.attempt import BatchAttempt, fields_of, touch
from benchmarks.contenders import grain_records
from benchmarks.contenders.grain_records import Row, columns, parser
from benchmarks.job import Job
from benchmarks.machine import cores
from benchmarks.resume import ResumeAttempt, Saved, half_of

SEED = 7


def in_order(job: Job) -> BatchAttempt:
    """Read in file order, in worker processes."""
    return _attempt(job, lambda records: records, workers=cores())


def shuffled(job: Job) -> BatchAttempt:
    """Read in an exactly shuffled order, in worker processes."""
    return _attempt(job, _exactly, workers=cores())


def shuffled_by_threads(job: Job) -> BatchAttempt:
    """Do the same in one process, whose threads read ahead: nothing has to be started first."""
    return _attempt(job, _exactly, workers=0)


def resumed(job: Job) -> ResumeAttempt:
    """Go on in an exactly shuffled order."""
    return ResumeAttempt(shuffled_by_threads(job), half_of(job), save, restore)


def resumed_records(job: Job) -> ResumeAttempt:
    """Go on in TFRecord files, shuffled within a window."""
    return ResumeAttempt(grain_records.shuffled(job), half_of(job), save, restore)


def save(iterator: Iterator[Row], _: int) -> Saved:
    """Return what Grain wants to be kept."""
    state = iterator.get_state()  # type: ignore[attr-defined]
    return Saved(state, len(json.dumps(state, default=repr)))


def restore(batches: Iterable[Row], state: Any) -> Iterator[Row]:
    """Return an iterator that goes on there."""
    iterator: Any = iter(batches)
    iterator.set_state(state)
    going_on: Iterator[Row] = iterator
    return going_on


def _exactly(records: Any) -> Any:
    return records.shuffle(seed=SEED)


def _attempt(job: Job, ordered: Callable[[Any], Any], *, workers: int) -> BatchAttempt:
    parse = parser(fields_of(job))

    def describe(shards: Sequence[str]) -> Iterable[Row]:
        records = grain.MapDataset.source(grain.sources.ArrayRecordDataSource(list(shards)))
        batches = ordered(records).map(parse).to_iter_dataset().batch(job.batch)
        if workers:
            batches = batches.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers))
        found: Iterable[Row] = batches
        return found

    return BatchAttempt(job.shards, describe, touch, columns)
