"""`plan`: how a batch will be split so that it fits, found out before training."""

from dataclasses import replace
from typing import Any

from anybatch.handover import Orders, received_orders
from anybatch.memory import (
    KEPT_FACTOR,
    allowance,
    cacheable_bytes,
    keep_freed_blocks,
    make_peaks_predictable,
)
from anybatch.stream.limits import limit_of as stream_limit
from anybatch.train.backends import backend_of
from anybatch.train.inputs import FirstBatch, Source, StreamSource
from anybatch.train.memories import HostMemory, Memory, device_memories
from anybatch.train.plan_alternatives import alternatives
from anybatch.train.plan_known import COPIES_OF_SLICES, FEW, Held, held_before, known_of
from anybatch.train.plan_measured import MeasuredPlan
from anybatch.train.plan_memory import Known
from anybatch.train.plan_need import may_not_fit
from anybatch.train.plan_pace import fastest
from anybatch.train.plan_refusals import AboveLimit, OneSampleTooLarge
from anybatch.train.plan_search import MARGIN, chosen
from anybatch.train.plan_uses import Peak, accounted
from anybatch.train.plans import Plan
from anybatch.train.probe import RanOut
from anybatch.train.refusals import CannotSplit
from anybatch.train.routes import planned
from anybatch.train.session import Session
from anybatch.units import parse_size, size

_NOT_PROBED = "nothing was probed: this data has no batch, or none that could be read twice"


def plan(
    model: Any,
    data: Any,
    *,
    batch_size: int | None = None,
    memory: str | int | None = None,
    device_memory: str | int | None = None,
) -> Plan:
    """Return how `fit` would split batches of this data for this model under these limits.

    The first time a few small updates are made and undone, which takes seconds; what they showed is kept in
    the user's cache folder, so that the second time takes a moment. With a GPU its memory is probed too, and
    the tighter of both decides.

    >>> import keras, numpy as np
    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> found = plan(model, (np.ones((8, 3)), np.ones((8, 1))), batch_size=8, memory="16GiB")
    >>> found.parts, found.exact
    (1, True)
    """
    from anybatch.train.fit import opened

    backend = backend_of(model)
    backend.check_training(model, batch_size)
    x, y, weights = backend.unpacked(data) if isinstance(data, tuple) else (data, None, None)
    source = opened(backend, x, y, weights, batch_size=batch_size, steps=None)
    return measured(model, _probed_with(model, source), limit_of(memory), device_memory)


def first_plan(
    model: Any, source: Source, micro_batch_size: int | str, memory: Any, device_memory: Any
) -> Plan:
    """Return the plan that `fit` starts with: measured where there is a limit, else as told.

    Without one, batches stay whole until memory runs out, unless container and machine allow so little that
    they may not fit.
    """
    told = planned(source, micro_batch_size, memory, device_memory)
    orders = received_orders()
    limit: str | int | None = memory if memory is not None else (orders or Orders()).limit_bytes
    if limit is not None:
        check_below(model, HostMemory(limit_of(limit)))
    if micro_batch_size != "auto" or source.num_batches == 0:
        return told
    if not source.repeatable:
        return told if limit is None else _noted(told, _NOT_PROBED)
    if limit is not None or device_memory is not None:
        return measured(model, _probed_with(model, source), limit_of(limit), device_memory)
    allowed = allowance()
    if not (isinstance(source, StreamSource) or allowed.is_of_the_process):
        # who has a machine to himself does not wait for a dataset's first batch twice
        return told
    probed = _probed_with(model, source)
    return measured(model, probed, allowed.limit_bytes) if _is_doubtful(model, probed) else told


def check_below(model: Any, memory: Memory) -> Held:
    """Return what a memory holds before training; refuse if that is more than its limit."""
    held = held_before(model, memory)
    if held.now_bytes >= memory.limit_bytes:
        raise AboveLimit(held.now_bytes, memory.limit_bytes)
    return held


def _probed_with(model: Any, source: Source) -> Source:
    """Return what probes are made with."""
    if isinstance(source, StreamSource) or not source.repeatable or source.num_batches == 0:
        return source
    # batches of a dataset come whole, and a second first one may take long to come
    batch = source.first_rows(FEW)
    return source if batch is None else FirstBatch(batch, backend_of(model).row_count(batch))


def _is_doubtful(model: Any, source: Source) -> bool:
    """Return whether a batch may not fit into what this process may hold, by a guess that takes a moment."""
    if source.batch_size is None:
        return False
    part, backend, allowed = source.first_rows(FEW), backend_of(model), allowance()
    if part is None:
        return False
    try:
        backend.build(model, part, source.batch_size)
    except CannotSplit:
        # then it trains whole batches, as Keras does, or not at all
        return False
    free_bytes = allowed.limit_bytes - held_before(model, HostMemory(allowed.limit_bytes)).now_bytes
    return may_not_fit(backend.sizes(model, part), source.batch_size, free_bytes)


def memories_of(model: Any, memory: Any, device_memory: Any) -> list[Memory]:
    """Return the memories that a model is trained in, the host's first, with their limits."""
    return [HostMemory(limit_of(memory)), *device_memories(model, device_memory)]


def limit_of(memory: str | int | None) -> int:
    """Return what the process may hold: as told, never more than container and machine allow."""
    orders = received_orders()
    bounds = [orders and orders.limit_bytes, None if memory is None else parse_size(memory)]
    return min([allowance().limit_bytes, *(bound for bound in bounds if bound)])


def spare_bytes(planned: Plan) -> int:
    """Return what training as planned leaves of its limit; a part of what is free where there is no limit."""
    if planned.limit_bytes is None or planned.predicted_peak_bytes is None:
        return cacheable_bytes() // 4
    return max(0, planned.limit_bytes - round(planned.predicted_peak_bytes * KEPT_FACTOR))


def measured(model: Any, source: Source, limit_bytes: int, device_memory: Any = None) -> Plan:
    """Return the plan for batches of a source."""
    make_peaks_predictable()
    devices = device_memories(model, device_memory)
    on_host = _within(model, source, HostMemory(limit_bytes))
    on_devices = [_on(memory.name, _within(model, source, memory)) for memory in devices]
    planned = min([on_host, *on_devices], key=lambda one: one.micro_batch_size or 0)
    if device_memory is not None and not devices:
        planned = _noted(planned, "device_memory changes nothing: no accelerator is there")
    return planned


def _within(model: Any, source: Source, memory: Memory) -> Plan:
    """Return the plan as far as one memory decides."""
    held = check_below(model, memory)
    batch_size, part = source.batch_size, None
    if batch_size is not None and source.repeatable and source.num_batches != 0:
        part = source.first_rows(FEW)
    if batch_size is None or part is None:
        return Plan(batch_size, batch_size, None, None, memory.limit_bytes, notes=(_NOT_PROBED,))
    try:
        backend_of(model).check_splits(model, "part")
        # before anything is probed: a few updates may leave a model that is undefined for all rows
        splitting = Session(model, None, source).about_splitting(part)
        known = known_of(model, source, part, memory, held)
    except RanOut:
        raise OneSampleTooLarge(held.n_bytes, memory.limit_bytes) from None
    except CannotSplit as refusal:
        return Plan(batch_size, batch_size, 1, None, memory.limit_bytes, notes=(f"not probed: {refusal}",))
    planned = _told(known, splitting, source, held, memory.limit_bytes)
    return _faster(planned, held.n_bytes) if planned.parts == 1 and not memory.name else planned


def _on(device: str, planned: Plan) -> Plan:
    return _noted(planned, f"the memory of {device} decides: peak and limit are there")


def _noted(planned: Plan, note: str) -> Plan:
    return replace(planned, notes=(*planned.notes, note))


def _faster(planned: Plan, held_bytes: int) -> Plan:
    """Spend memory that nobody needs on speed."""
    peak, limit = planned.predicted_peak_bytes or 0, planned.limit_bytes or 0
    with_kept = held_bytes + round((peak - held_bytes) * KEPT_FACTOR)
    if with_kept > limit * (1 - MARGIN):
        return planned
    keep_freed_blocks()
    note = f"there is room: freed blocks are kept for speed, so the peak may be up to {size(with_kept)}"
    return _noted(planned, note)


def _told(known: Known, splitting: Any, source: Source, held: Held, limit_bytes: int) -> MeasuredPlan:
    peaks, free_bytes, batch_size = known.peaks, limit_bytes - held.n_bytes, source.batch_size or 1
    largest = chosen(peaks, batch_size, free_bytes)
    if largest is None:
        needed = held.n_bytes + peaks.predicted_peak_bytes(1, max(2, batch_size))
        if not peaks.least_split_bytes:
            needed += COPIES_OF_SLICES * known.sizes.slices_bytes * batch_size
        # where sums grow with the batch, the whole of it may take less than its parts
        needed = min(needed, held.n_bytes + peaks.whole.predicted_peak_bytes(batch_size))
        raise OneSampleTooLarge(round(needed / (1 - MARGIN)), limit_bytes)
    part = fastest(largest, known.paces, batch_size)
    seen = next((pace.rise_bytes for pace in known.paces if pace.part == part), None)
    peak = Peak(
        n_bytes=held.n_bytes + (peaks.predicted_peak_bytes(part, batch_size) if seen is None else seen),
        held_bytes=held.n_bytes,
        there_bytes=held.variables_bytes,
        batch_size=batch_size,
        part=part,
        growing_bytes=round(part * (peaks.whole if part >= batch_size else peaks.split).bytes_per_sample),
        stream_bytes=_stream_bytes(source),
    )
    account = accounted(peak, known.sizes)
    split = peak.parts > 1
    return MeasuredPlan(
        batch_size=batch_size,
        micro_batch_size=part,
        parts=peak.parts,
        predicted_peak_bytes=peak.n_bytes,
        limit_bytes=limit_bytes,
        exact=splitting.exact or not split,
        notes=(*splitting.notes, *_why_smaller(part, largest)) if split else (),
        uses=account.rows,
        alternatives=alternatives(peak, peaks, known.sizes, account, exact=splitting.exact),
        measured=tuple(sorted((pace.part, held.n_bytes + pace.rise_bytes) for pace in known.paces)),
    )


def _why_smaller(part: int, largest: int) -> list[str]:
    return [f"parts of {largest} would fit; those of {part} were faster"] if part < largest else []


def _stream_bytes(source: Source) -> int | None:
    if not isinstance(source, StreamSource):
        return None
    return stream_limit(source._stream._stage)  # noqa: SLF001
