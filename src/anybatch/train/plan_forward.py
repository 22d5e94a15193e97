"""How many rows a forward pass looks at at once: counted by what layers put out, not tried."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

from anybatch.handover import Orders, received_orders
from anybatch.memory import allowance
from anybatch.train.backends import backend_of
from anybatch.train.inputs import Source, StreamSource
from anybatch.train.memories import HostMemory
from anybatch.train.plan import check_below, limit_of
from anybatch.train.plan_known import FEW
from anybatch.train.plan_need import TIMES_ACTIVATIONS
from anybatch.train.plan_search import MARGIN
from anybatch.train.refusals import CannotSplit
from anybatch.train.routes import planned


def rows_at_once(
    model: Any, source: Source, micro_batch_size: int | str, memory: Any, device_memory: Any, *, phase: str
) -> int | None:
    """Return how many rows to look at at once: as told, else what fits by a bound; None: whole batches.

    `phase`: "test" or "predict". What cannot be split is refused if that was told, and else stays whole.
    A forward pass lets go of what it has used, so all that layers put out is more than it ever holds; tables
    that layers make for themselves, as attention does, are why it is taken several times.
    """
    told = planned(source, micro_batch_size, memory, device_memory).micro_batch_size
    if micro_batch_size != "auto":
        check_batches(model, source, told, phase)
    if not _is_limited(memory):
        return told
    limit_bytes = limit_of(memory)
    held = check_below(model, HostMemory(limit_bytes))
    if micro_batch_size != "auto" or source.num_batches == 0 or not source.repeatable:
        return told
    if backend_of(model).against_splitting(model, phase) is not None:
        return told
    part = source.first_rows(FEW)
    if part is None:
        return told
    try:
        backend_of(model).build(model, part, source.batch_size)
    except CannotSplit:
        return told
    fitting = _fitting(model, part, limit_bytes * (1 - MARGIN) - held.now_bytes)
    return fitting if told is None else min(told, fitting)


def check_batches(model: Any, source: Source, most: int | None, phase: str) -> None:
    """Refuse batches of more than `most` rows of a model that cannot be split, before any of them runs."""
    refusal = backend_of(model).against_splitting(model, phase)
    if refusal is not None and most is not None and _has_more(source, most, backend_of(model).row_count):
        raise refusal


def _has_more(source: Source, most: int, row_count: Callable[[Any], int]) -> bool:
    """Return whether the first batch has more rows, as far as it can be looked at."""
    if source.num_batches == 0 or not source.repeatable:
        return False
    if not isinstance(source, StreamSource):
        batch = source.first_rows(most)
        return batch is not None and row_count(batch) > most
    batches: Any = source.open(0, most)
    with closing(batches):
        first = next(batches, iter(()))
        return not next(first, (None, True))[1]


def _is_limited(memory: Any) -> bool:
    """Return whether somebody has named a limit: the caller, a supervisor, or whoever made the container."""
    ordered = (received_orders() or Orders()).limit_bytes
    return memory is not None or ordered is not None or allowance().is_of_the_process


def _fitting(model: Any, part: Any, free_bytes: float) -> int:
    sizes = backend_of(model).sizes(model, part)
    row_bytes = TIMES_ACTIVATIONS * sizes.activations_bytes + sizes.sample_bytes
    return max(1, int(free_bytes // max(1, row_bytes)))
