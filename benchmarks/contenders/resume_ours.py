"""anybatch: going on in the middle of a shuffled epoch from a state that is JSON."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.contenders import ours
from benchmarks.job import Job
from benchmarks.resume import ResumeAttempt, Saved, half_of


def shuffled(job: Job) -> ResumeAttempt:
    """Go on in an exactly shuffled order."""
    return ResumeAttempt(ours.shuffled(job), half_of(job), save, restore)


def window(job: Job) -> ResumeAttempt:
    """Go on in an order that is shuffled in blocks."""
    return ResumeAttempt(ours.window(job), half_of(job), save, restore)


def save(iterator: Any, _: int) -> Saved:
    """Return the state as the text that would be kept."""
    text = json.dumps(iterator.get_state())
    return Saved(text, len(text))


def restore(batches: Iterable[Any], state: str) -> Iterator[Any]:
    """Return an iterator that goes on there."""
    iterator: Any = iter(batches)
    iterator.set_state(json.loads(state))
    going_on: Iterator[Any] = iterator
    return going_on
