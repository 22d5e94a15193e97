"""`plan`: how a batch will be split so that it fits, found out before training."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from anybatch.errors import AnybatchError
from anybatch.handover import Orders, received_orders
from anybatch.memory import (
    KEPT_FACTOR,
    Peaks,
    Probe,
    allowance,
    keep_freed_blocks,
    make_peaks_predictable,
)
from anybatch.stream import Stream
from anybatch.train.backends import backend_of
from anybatch.train.inputs import FirstBatch, Source, StreamSource
from anybatch.train.memories import HostMemory, Memory, device_memories
from anybatch.train.plan_memory import key_of, remember, remembered
from anybatch.train.plan_search import MARGIN, Search, Split, chosen
from anybatch.train.plans import Plan
from anybatch.train.probe import Prober, RanOut, undone
from anybatch.train.routes import planned
from anybatch.train.session import Session
from anybatch.units import parse_size, size

_KEPT_BYTES: WeakKeyDictionary[Any, dict[str, int]] = WeakKeyDictionary()
"""By memory, what probing has left there for a model, traced steps above all: its peak has it in already."""


class AboveLimit(AnybatchError, MemoryError):
    """The process holds more than its limit before training has begun."""

    def __init__(self, held_bytes: int, limit_bytes: int) -> None:
        super().__init__(held_bytes, limit_bytes)
        self.held_bytes = held_bytes
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        held_already = size(self.held_bytes, up=True)
        return (
            f"the process already holds {held_already} and may hold {size(self.limit_bytes)}; "
            f"let go of something, or allow more than {held_already}"
        )


class OneSampleTooLarge(AnybatchError, MemoryError):
    """Not even a part of one sample fits."""

    def __init__(self, needed_bytes: int, limit_bytes: int) -> None:
        super().__init__(needed_bytes, limit_bytes)
        self.needed_bytes = needed_bytes
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        needed = size(self.needed_bytes, up=True)
        return (
            f"an update of one sample at a time takes {needed} and the limit is {size(self.limit_bytes)}; "
            f"a limit of {needed}, a smaller model or an optimizer with fewer slots would do"
        )


@dataclass(frozen=True, slots=True)
class MeasuredPlan(Plan):
    """A plan that rests on probes, and what uses the bytes."""

    uses: tuple[tuple[str, int], ...] = field(default=())

    def __str__(self) -> str:
        rows = [f"  {name:<14}{size(n_bytes)}" for name, n_bytes in self.uses]
        # not super(): a dataclass with slots is made anew, and the word would mean the old one
        return "\n".join([Plan.__str__(self), *(["what uses it", *rows] if rows else [])])


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
    backend.check_model(model, batch_size)
    x, y, weights = backend.unpacked(data) if isinstance(data, tuple) else (data, None, None)
    source = opened(backend, x, y, weights, batch_size=batch_size, steps=None)
    again = isinstance(x, Stream) or y is not None
    return measured(model, source, limit_of(memory), device_memory, again=again)


def first_plan(
    model: Any, source: Source, micro_batch_size: int | str, memory: Any, device_memory: Any
) -> Plan:
    """Return the plan that `fit` starts with: measured where there is a limit, else as told.

    Without a limit nothing is probed: batches stay whole until memory runs out.
    """
    told = planned(source, micro_batch_size, memory, device_memory)
    orders = received_orders()
    limit: str | int | None = memory if memory is not None else (orders or Orders()).limit_bytes
    if (limit is None and device_memory is None) or micro_batch_size != "auto":
        return told
    if not source.repeatable or source.num_batches == 0:
        return told
    if not isinstance(source, StreamSource):
        # batches of a dataset come whole, and a second first one may take long to come
        source = FirstBatch(source, backend_of(model).row_count)
    return measured(model, source, limit_of(limit), device_memory)


def limit_of(memory: str | int | None) -> int:
    """Return what the process may hold: as told, never more than container and machine allow."""
    orders = received_orders()
    bounds = [allowance().limit_bytes, orders and orders.limit_bytes, memory and parse_size(memory)]
    return min(bound for bound in bounds if bound)


def measured(
    model: Any, source: Source, limit_bytes: int, device_memory: Any = None, *, again: bool = True
) -> Plan:
    """Return the plan for batches of a source. `again`: they can be read more than once."""
    make_peaks_predictable()
    devices = device_memories(model, device_memory)
    on_host = _within(model, source, HostMemory(limit_bytes), again=again)
    on_devices = [_on(memory.name, _within(model, source, memory, again=again)) for memory in devices]
    planned = min([on_host, *on_devices], key=lambda one: one.micro_batch_size or 0)
    if device_memory is not None and not devices:
        planned = _noted(planned, "device_memory changes nothing: no accelerator is there")
    return planned


def _within(model: Any, source: Source, memory: Memory, *, again: bool) -> Plan:
    """Return the plan as far as one memory decides."""
    held_bytes = memory.held_bytes() - _KEPT_BYTES.get(model, {}).get(memory.name, 0)
    if held_bytes >= memory.limit_bytes:
        raise AboveLimit(held_bytes, memory.limit_bytes)
    batch_size = source.batch_size
    if batch_size is None or not (again or isinstance(source, StreamSource)):
        note = "nothing was probed: this data has no batches that could be read twice"
        return Plan(batch_size, batch_size, None, None, memory.limit_bytes, notes=(note,))
    try:
        peaks = _peaks(model, source, batch_size, memory)
    except RanOut:
        raise OneSampleTooLarge(held_bytes, memory.limit_bytes) from None
    planned = _told(model, peaks, batch_size, held_bytes, memory.limit_bytes)
    return _faster(planned, held_bytes) if planned.parts == 1 and not memory.name else planned


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


def _peaks(model: Any, source: Source, batch_size: int, memory: Memory) -> Peaks:
    part = _first_part(source)
    key = key_of(model, part, memory.name)
    peaks = remembered(key)
    if peaks is None:
        peaks = _probed(model, source, batch_size, memory, part)
        remember(key, peaks)
    return peaks


def _probed(model: Any, source: Source, batch_size: int, memory: Memory, part: Any) -> Peaks:
    before_bytes = memory.held_bytes()
    backend_of(model).build(model, part)
    # while a device is probed nothing is known of the host: the copy goes to the disk
    free_on_host = 0 if memory.name else memory.limit_bytes - before_bytes
    with undone(model, free_bytes=free_on_host) as copy_bytes:
        prober = Prober(model, source, memory)
        # building has raised memory too; the copy of everything is there for the probes only
        built_bytes = max(0, memory.held_bytes() - copy_bytes - before_bytes)
        start = prober.warm_up()
        search = Search(
            measure=_measure(prober, built_bytes),
            batch_size=batch_size,
            free_bytes=max(1, memory.limit_bytes - before_bytes - copy_bytes),
            start=Probe(start.samples, start.peak_bytes + built_bytes),
        )
        peaks = search.run()
    _KEPT_BYTES.setdefault(model, {})[memory.name] = max(0, memory.held_bytes() - before_bytes)
    return peaks


def _measure(prober: Prober, built_bytes: int) -> Callable[[int, Split], int | None]:
    def measure(rows: int, kind: Split) -> int | None:
        try:
            return built_bytes + prober.rise_bytes(rows, several=kind is Split.SEVERAL)
        except RanOut:
            return None

    return measure


def _told(model: Any, peaks: Peaks, batch_size: int, held_bytes: int, limit_bytes: int) -> Plan:
    free_bytes = limit_bytes - held_bytes
    part = chosen(peaks, batch_size, free_bytes)
    if part is None:
        needed = held_bytes + peaks.split.predicted_peak_bytes(1)
        raise OneSampleTooLarge(round(needed / (1 - MARGIN)), limit_bytes)
    rise = peaks.predicted_peak_bytes(part, batch_size)
    model_of_peak = peaks.whole if part >= batch_size else peaks.split
    planned = MeasuredPlan(
        batch_size=batch_size,
        micro_batch_size=part,
        parts=-(-batch_size // part),
        predicted_peak_bytes=held_bytes + rise,
        limit_bytes=limit_bytes,
        uses=(
            ("held already", held_bytes),
            ("fixed", round(model_of_peak.fixed_bytes)),
            (f"{part} samples", round(model_of_peak.bytes_per_sample * part)),
        ),
    )
    return Session(model, part).told(planned)


def _first_part(source: Source) -> Any:
    batches = source.open(0, 2)
    try:
        return next(next(batches))[0]
    finally:
        close = getattr(batches, "close", None)
        if close is not None:
            close()
