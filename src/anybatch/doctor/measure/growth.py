"""Watch what the process holds while batches pass, again and again: what grows with every pass is kept."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from anybatch.memory import give_back_freed, held
from anybatch.stream import Stream

_PASSES = 8
_STEPS = 8
_WARM_UP = 3
_MOST_SECONDS = 10.0
_NOTABLE_BYTES = 16 << 10
"""Per step: an allocator's own moods are below that, a kept batch is above."""


@dataclass(frozen=True, slots=True)
class GrowthFacts:
    """Memory that grew with every pass over the same batches."""

    bytes_per_step: float
    steps: int


def watched_growth(model: Any, stream: Stream) -> GrowthFacts | None:
    """Return how memory grows while the first batches go through the model several times, or None.

    Of an input that takes too long for that nothing is told.
    """
    from anybatch.train import evaluate

    readings, end = [], time.monotonic() + _MOST_SECONDS
    for _ in range(_PASSES):
        if time.monotonic() > end:
            return None
        evaluate(model, stream.take(_STEPS), verbose=0)
        give_back_freed()
        readings.append(held().counted_bytes)
    return growth_over(readings, _STEPS)


def growth_over(readings: Sequence[int], steps: int) -> GrowthFacts | None:
    """Return the growth in readings taken every so many steps, if it never stops.

    The first passes are left out: everything grows at first. The median is what a single jump cannot move.

    >>> growth_over([0, 9_000_000, 9_000_000, 9_000_000, 10_000_000, 11_000_000, 12_000_000], 8)
    GrowthFacts(bytes_per_step=125000.0, steps=24)
    >>> growth_over([0, 9_000_000, 9_000_000, 9_000_000, 9_000_000, 11_000_000, 11_000_000], 8)
    """
    settled = readings[_WARM_UP:]
    rises = [after - before for before, after in pairwise(settled)]
    if len(rises) < 2 or min(rises) <= 0:
        return None
    usual = sorted(rises)[len(rises) // 2] / steps
    return GrowthFacts(usual, len(rises) * steps) if usual >= _NOTABLE_BYTES else None
