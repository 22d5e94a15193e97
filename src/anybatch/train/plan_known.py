"""What is known of a model's peaks: from another time, as far as that reaches, else by probing it."""

from dataclasses import dataclass, replace
from math import inf
from typing import Any
from weakref import WeakKeyDictionary

from anybatch.handover import Orders, received_orders
from anybatch.memory import give_back_freed
from anybatch.train.backends import backend_of
from anybatch.train.inputs import Source
from anybatch.train.memories import Memory
from anybatch.train.plan_memory import Known, key_of, remember, remembered
from anybatch.train.plan_pace import Pace, paces
from anybatch.train.plan_pooled import PooledSearch
from anybatch.train.plan_search import MARGIN, Search, Split, chosen, trusted
from anybatch.train.probe import Prober, undone
from anybatch.train.trials import Trials, ascending, pooled

FEW = 2
"""So many rows are enough to know what they look like."""

NEAR = 0.1
COPIES_OF_SLICES = 3
"""An embedding's gradients of all parts are put end to end, then summed by row; measured of one of 51 MB."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a memory held before a model was probed, weights and slots that existed by then included."""

    n_bytes: int
    variables_bytes: int
    left_bytes: int = 0
    """What probing has left there, traced steps above all: a measured peak has it in already."""

    @property
    def now_bytes(self) -> int:
        """What is held, all of it: TensorFlow's allocator for oneDNN never gives anything back."""
        return self.n_bytes + self.left_bytes


_BEFORE: WeakKeyDictionary[Any, dict[str, Held]] = WeakKeyDictionary()
"""By memory, how it was before a model was probed for the first time."""


def held_before(model: Any, memory: Memory) -> Held:
    """Return what a memory holds, less what probing this model has left in it."""
    # what an earlier training has let go of is nobody's: an LSTM's was 130 MB
    give_back_freed()
    now_bytes = memory.held_bytes()
    before = _BEFORE.get(model, {}).get(memory.name)
    if before is None:
        return Held(now_bytes, backend_of(model).variables_bytes(model))
    return replace(before, n_bytes=now_bytes - before.left_bytes)


def known_of(model: Any, source: Source, part: Any, memory: Memory, held: Held) -> Known:
    """Return what is known of a model from another time, as far as that reaches; else probe it.

    `part`: the first rows of the source.
    """
    batch_size = source.batch_size or 1
    grows = backend_of(model).sums_grow(model)
    # what is put end to end comes to what the batch has, however it is split
    key = key_of(model, part, f"{memory.name} {batch_size}" if grows else memory.name)
    known = remembered(key)
    if known is not None:
        free_bytes = memory.limit_bytes - held.n_bytes
        wanted = chosen(known.peaks, batch_size, free_bytes)
        # what training has left since is of use to the next one: it is the limit that may be another
        first = _BEFORE.get(model, {}).get(memory.name, held)
        far = _far_from(known.peaks.tried_under_bytes, memory.limit_bytes - first.n_bytes)
        if not far and (wanted is None or _reaches(known, wanted, batch_size, grows=grows)):
            return known
    known = _probed(model, source, memory, part, before_bytes=held.n_bytes)
    left_bytes = max(0, memory.held_bytes() - held.n_bytes)
    _BEFORE.setdefault(model, {})[memory.name] = replace(held, left_bytes=left_bytes)
    if _largest_allowed() is None:
        # bounds that a death has set are no peaks
        remember(key, known)
    return known


def _far_from(tried_under_bytes: int, free_bytes: int) -> bool:
    """Return whether peaks were found under so different a limit that what was kept then is no guide now."""
    return bool(tried_under_bytes) and abs(free_bytes - tried_under_bytes) > NEAR * tried_under_bytes


def _reaches(known: Known, wanted: int, batch_size: int, *, grows: bool) -> bool:
    """Return whether what is known says enough of parts of that size."""
    committed = not grows or wanted == batch_size or known.peaks.least_split_bytes > 0
    return committed and trusted(wanted, known.peaks.seen_samples)


def _probed(model: Any, source: Source, memory: Memory, part: Any, *, before_bytes: int) -> Known:
    backend = backend_of(model)
    backend.build(model, part, source.batch_size)
    sizes = backend.sizes(model, part)
    # while a device is probed nothing is known of the host: the copy goes to the disk
    free_on_host = 0 if memory.name else memory.limit_bytes - before_bytes
    with undone(model, free_bytes=free_on_host) as copy_bytes, Prober(model, source, memory) as prober:
        # building has raised memory too, as have earlier probes; the copy is there for these probes only
        built_bytes = max(0, memory.held_bytes() - copy_bytes - before_bytes)
        trials = Trials(prober, built_bytes, _largest_allowed())
        free_bytes = max(1, memory.limit_bytes - before_bytes - copy_bytes)
        batch_size = source.batch_size or 1
        if memory.name or backend.host_pool() is None:
            grows = backend.sums_grow(model)
            search: Search | PooledSearch = ascending(trials, batch_size, free_bytes, grows=grows)
        else:
            # when all is put back, variables change places, and what comes then may not find its own
            trials = replace(trials, built_bytes=built_bytes + backend.largest_variable_bytes(model))
            sums_bytes = COPIES_OF_SLICES * sizes.slices_bytes * batch_size
            search = pooled(trials, batch_size, free_bytes, sums_bytes=sums_bytes, copy_bytes=copy_bytes)
        peaks, timed = search.run(), tuple[Pace, ...]()
        part_size = chosen(peaks, batch_size, free_bytes)
        if backend.sums_grow(model) and part_size is not None and part_size < batch_size:
            least = (
                search.verified.get(part_size) or trials.rise_bytes(part_size, Split.ALL) or free_bytes + 1
            )
            # what was seen to fit is not to be refused for the want of a margin
            within = int(free_bytes * (1 - MARGIN))
            peaks = replace(peaks, least_split_bytes=within if within < least <= free_bytes else least)
        if not memory.name and part_size is not None:
            # a pool keeps everything
            most_bytes = inf if backend.host_pool() is None else free_bytes * (1 - MARGIN)
            timed = _timed(trials, part_size, batch_size, most_bytes)
    return Known(peaks, sizes, timed)


def _timed(trials: Trials, part: int, batch_size: int, most_bytes: float) -> tuple[Pace, ...]:
    """Return how fast the chosen part is, and smaller ones. A batch that fits whole stays whole."""
    return paces(trials.pace, part, batch_size, most_bytes=most_bytes) if part < batch_size else ()


def _largest_allowed() -> int | None:
    """Return the largest part that a supervisor allows, who has seen a larger one die."""
    return (received_orders() or Orders()).largest_part
