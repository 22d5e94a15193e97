"""The part of a stream that is order alone: any record at any position, computed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from anybatch._native import Order
from anybatch.errors import AnybatchError
from anybatch.records import int64s
from anybatch.stream.ahead import in_order
from anybatch.stream.chunk import Chunk, State
from anybatch.stream.run import Run
from anybatch.stream.stage import HOLDING_WEIGHT, SOURCE_WEIGHT, Operation, Stage

BLOCKS_PER_WINDOW = 64
_AT_A_TIME = 1 << 20

Numbers: TypeAlias = NDArray[np.int64]

Step: TypeAlias = tuple[str, tuple[int, ...]]
"""A change of order: ("shuffle", (seed, anew)), ("skip", (n,)), ("take", (n,)), ("shard", (count, index))."""


@runtime_checkable
class Source(Protocol):
    """A stage whose records have numbers."""

    @property
    def numbered(self) -> bool:
        """Whether records can be had by number: not those of a compressed shard."""

    def records(self) -> int:
        """Return how many numbers there are."""

    def left_out(self) -> Numbers:
        """Return the numbers that are known never to come because their records are damaged, in order."""

    def mean_bytes(self) -> int:
        """Return how many bytes a record takes on average: what a window of bytes is counted in."""

    def open_in(self, run: Run, steps: tuple[Step, ...], start: int) -> Iterator[Chunk]:
        """Yield the records in the order that the steps make, from position `start` on."""


@dataclass(frozen=True, slots=True)
class Addressed:
    """A source, the order its records come in, and what is done to each: nothing that adds or drops any."""

    source: Any
    steps: tuple[Step, ...] = ()
    maps: tuple["OneToOne", ...] = ()

    def then(self, step: Step) -> "Addressed":
        """Return the same with one more change of order."""
        return replace(self, steps=(*self.steps, step))

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        """Yield the records from where the state says."""
        position, steps = _place(self.steps, state)

        def source(below: Run) -> Iterator[Chunk]:
            chunks: Iterator[Chunk] = self.source.open_in(below, steps, position)
            return chunks

        chunks = _through(self.maps, run, source)
        before = (state or {}).get("before")
        if before:
            chunks = (chunk.stamped(lambda _row, at: {**at, "before": before}) for chunk in chunks)
        return chunks

    def length(self) -> int:
        """Return how many positions the order has."""
        return length_of(self.source.records(), self.steps)

    def left_out(self) -> Numbers:
        """Return the positions in epoch 0 that are known to stay empty: their records are damaged."""
        bad: Numbers = self.source.left_out()
        if not len(bad) or not self.steps:
            return bad
        order = Order(self.source.records(), native_steps(self.steps, 0, self.source.mean_bytes))
        # an order can be computed one way only: from positions to numbers
        starts = range(0, len(order), _AT_A_TIME)
        found = [start + _places_of(bad, order, start) for start in starts]
        return np.concatenate([np.empty(0, np.int64), *found])

    def coming(self) -> int:
        """Return how many records come in epoch 0, as far as is known."""
        return self.length() - len(self.left_out())


def _places_of(wanted: Numbers, order: Order, start: int) -> Numbers:
    """Return where among the next positions the wanted numbers, which are in order, stand."""
    numbers = int64s(order.records(start, min(len(order), start + _AT_A_TIME)))
    nearest = np.minimum(np.searchsorted(wanted, numbers), len(wanted) - 1)
    return np.flatnonzero(wanted[nearest] == numbers)


def run_map(
    stage: "OneToOne", run: Run, parent: Callable[[Run], Iterator[Chunk]], weight: int
) -> Iterator[Chunk]:
    """Yield what a one-to-one stage makes of its parent's chunks, in order, on threads, within its share."""
    share, below = run.share(
        HOLDING_WEIGHT, weight, chunks=2 * run.threads + 2, reserved=stage.reserved_bytes
    )
    meter = run.meters.meter(stage.described(), share)
    return in_order(
        lambda chunk: stage.change(chunk) if chunk.rows else chunk, parent(below), run.threads, meter
    )


def _through(
    maps: tuple["OneToOne", ...], run: Run, source: Callable[[Run], Iterator[Chunk]]
) -> Iterator[Chunk]:
    if not maps:
        return source(run)
    weight = SOURCE_WEIGHT + HOLDING_WEIGHT * (len(maps) - 1)
    return run_map(maps[-1], run, lambda below: _through(maps[:-1], below, source), weight)


def length_of(records: int, steps: tuple[Step, ...]) -> int:
    """Return how many of so many records are left after the steps."""
    for name, numbers in steps:
        if name == "skip":
            records = max(0, records - numbers[0])
        elif name == "take":
            records = min(records, numbers[0])
        elif name == "shard":
            records = rows_dealt(records, *numbers)
        elif name == "deal":
            whole, rest = divmod(records, numbers[0])
            records = whole * rows_dealt(numbers[0], *numbers[1:]) + rows_dealt(rest, *numbers[1:])
        elif name == "remaining":
            records = max(0, records - sum(numbers))
    return records


def rows_dealt(rows: int, count: int, index: int) -> int:
    """Return how many of so many rows go to one of `count` who are dealt one at a time.

    >>> [rows_dealt(8, 3, index) for index in range(3)], rows_dealt(2, 3, 2)
    ([3, 3, 2], 0)
    """
    return max(0, -(-(rows - index) // count))


def addressed(stage: Stage) -> Addressed | None:
    """Return a stage as source, order and maps, or None if positions cannot be computed behind it."""
    if isinstance(stage, Source):
        return Addressed(stage) if stage.numbered else None
    if isinstance(stage, Kept):
        return stage.addressed()
    if isinstance(stage, Reordered):
        below = addressed(stage.parent)
        return None if below is None else below.then(stage.step())
    if isinstance(stage, OneToOne) and not stage.batched:
        below = addressed(stage.parent)
        return None if below is None else replace(below, maps=(*below.maps, stage))
    return None


class Reordered(Operation):
    """An operation that is a change of order where its parent's positions can be computed."""

    __slots__ = ()

    def step(self) -> Step:
        """Return the change of order."""
        raise AssertionError("every change of order says which")


class OneToOne(Operation):
    """An operation that makes one element out of each."""

    __slots__ = ()

    def change(self, chunk: Chunk) -> Chunk:
        """Return what becomes of a chunk."""
        raise AssertionError("every one-to-one operation says what it does")


class Kept(Operation):
    """An operation that keeps its parent's elements, so that any of them can be had by number."""

    __slots__ = ()

    def addressed(self) -> Addressed:
        """Return the source of what is kept, and the order it comes in."""
        raise AssertionError("whatever keeps elements says where")


class CannotMerge(AnybatchError, ValueError):
    """States of several workers that do not fit together or into this stream."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return self.problem


def native_steps(
    steps: tuple[Step, ...], epoch: int, mean_bytes: Callable[[], int]
) -> list[tuple[str, list[int]]]:
    """Return the steps as the native module takes them; a window is counted in records of `mean_bytes`."""
    return [(name, _native_numbers(name, numbers, epoch, mean_bytes)) for name, numbers in steps]


def _native_numbers(
    name: str, numbers: tuple[int, ...], epoch: int, mean_bytes: Callable[[], int]
) -> list[int]:
    if name not in {"shuffle", "window"}:
        return list(numbers)
    seed, anew = numbers[0] & (2**64 - 1), numbers[1]
    epoch = epoch if anew else 0
    if name == "shuffle":
        return [seed, epoch]
    block = max(1, numbers[2] // BLOCKS_PER_WINDOW // max(1, mean_bytes()))
    return [seed, epoch, block, BLOCKS_PER_WINDOW]


def merged(states: list[State]) -> State:
    """Return the one state from which any number of workers can go on, out of those of all workers."""
    before = {repr(state.get("before")) for state in states if state}
    if len(before) > 1:
        raise CannotMerge(
            "the states come from runs that went on from different places; take those of one run"
        )
    counts = [state["position"] if state else 0 for state in states]
    history: list[list[int]] = next(
        (state["before"] for state in states if state and state.get("before")), []
    )
    return {"position": 0, "before": _shortened([*history, counts])}


def _shortened(history: list[list[int]]) -> list[list[int]]:
    """Return the same in fewer numbers: workers that keep step have done a beginning of the order."""
    *earlier, last = history
    done = sum(last)
    if last != [-(-max(0, done - index) // len(last)) for index in range(len(last))]:
        return history
    if earlier and len(earlier[-1]) == 1:
        return [*earlier[:-1], [earlier[-1][0] + done]]
    return [*earlier, [done]]


def check_mergeable(stage: Stage) -> None:
    """Raise an error unless it can be computed what the workers of such a stream have left over."""
    order = addressed(stage)
    if order is None and isinstance(stage, Reordered):
        raise CannotMerge(
            f"`{stage.described()}` counts off what comes, and so the number of workers cannot change; "
            "put shard before filter and batch"
        )
    if order is None:
        raise CannotMerge(
            f"behind `{stage.described()}` the number of workers cannot change; "
            "behind shard there may be map, filter, batch and prefetch"
        )
    names = [name for name, _ in order.steps]
    if "shard" in names[:-1]:
        raise CannotMerge(
            f"the number of workers cannot change where {names[-1]} comes behind shard; put it before"
        )


def _place(steps: tuple[Step, ...], state: State) -> tuple[int, tuple[Step, ...]]:
    """Return the position to start at, and the steps with what earlier workers did taken out."""
    if not state:
        return 0, steps
    before = state.get("before") or []
    if not before:
        return state["position"], steps
    shards = [at for at, (name, _) in enumerate(steps) if name == "shard"]
    at = shards[-1] if shards else len(steps)
    done: tuple[Step, ...] = tuple(("remaining", tuple(counts)) for counts in before)
    return state["position"], (*steps[:at], *done, *steps[at:])
