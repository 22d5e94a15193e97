"""How many rows `evaluate` and `predict` look at at once: counted by what layers put out, not tried."""

from typing import Any

from anybatch.handover import Orders, received_orders
from anybatch.memory import allowance
from anybatch.train.backends import backend_of
from anybatch.train.inputs import Source, StreamSource
from anybatch.train.memories import HostMemory
from anybatch.train.plan import limit_of
from anybatch.train.plan_known import FEW, held_before
from anybatch.train.plan_need import TIMES_ACTIVATIONS
from anybatch.train.plan_refusals import AboveLimit
from anybatch.train.plan_search import MARGIN
from anybatch.train.refusals import CannotSplit
from anybatch.train.routes import planned


def rows_at_once(
    model: Any, source: Source, micro_batch_size: int | str, memory: Any, device_memory: Any
) -> int | None:
    """Return how many rows to look at at once: as told, else what fits by a bound; None: whole batches.

    A forward pass lets go of what it has used, so all that layers put out is more than it ever holds; tables
    that layers make for themselves, as attention does, are why it is taken several times.
    """
    told = planned(source, micro_batch_size, memory, device_memory).micro_batch_size
    if micro_batch_size != "auto" or not _is_limited(memory):
        return told
    limit_bytes = limit_of(memory)
    held = held_before(model, HostMemory(limit_bytes))
    if held.now_bytes >= limit_bytes:
        raise AboveLimit(held.now_bytes, limit_bytes)
    if source.num_batches == 0 or not (isinstance(source, StreamSource) or source.repeatable):
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


def _is_limited(memory: Any) -> bool:
    """Return whether somebody has named a limit: the caller, a supervisor, or whoever made the container."""
    ordered = (received_orders() or Orders()).limit_bytes
    return memory is not None or ordered is not None or allowance().is_of_the_process


def _fitting(model: Any, part: Any, free_bytes: float) -> int:
    sizes = backend_of(model).sizes(model, part)
    row_bytes = TIMES_ACTIVATIONS * sizes.activations_bytes + sizes.sample_bytes
    return max(1, int(free_bytes // max(1, row_bytes)))
