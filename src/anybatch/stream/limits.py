"""How much a stream may hold, and how far ahead it works."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from anybatch.handover import Orders, received_orders
from anybatch.memory import cacheable_bytes
from anybatch.stream.ahead import prefetched
from anybatch.stream.chunk import Chunk, State
from anybatch.stream.order import OneToOne
from anybatch.stream.run import DEFAULT_LIMIT_BYTES, Run
from anybatch.stream.stage import HOLDING_WEIGHT, Operation, Stage

_AHEAD = 2
_SWEPT_PART = 2
"""Where nobody has named a limit, no more than this part of what is free goes to reading ahead in sweeps."""


@dataclass(frozen=True, slots=True)
class LimitMemory(OneToOne):
    """A hard cap on the bytes that everything before it holds."""

    limit_bytes: int

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        return self.parent.open(run.limited(self.limit_bytes), state)

    def change(self, chunk: Chunk) -> Chunk:
        return chunk

    def described(self) -> str:
        return f"limit_memory({self.limit_bytes})"


@dataclass(frozen=True, slots=True)
class Prefetch(OneToOne):
    """Elements made ready while the consumer works; None: as many as serve and fit."""

    depth: int | None

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        depth = run.ahead(self.depth or _AHEAD)
        share, below = run.share(HOLDING_WEIGHT, self.parent.weight, chunks=2, reserved=self.reserved_bytes)
        return prefetched(self.parent.open(below, state), depth, run.meters.meter(self.described(), share))

    @property
    def weight(self) -> int:
        return self.parent.weight + HOLDING_WEIGHT

    def change(self, chunk: Chunk) -> Chunk:
        return chunk

    def described(self) -> str:
        return f"prefetch({'' if self.depth is None else self.depth})"


def chain(stage: Stage) -> list[Stage]:
    """Return the stages one after the other, the source first."""
    stages = [stage]
    while isinstance(stages[-1], Operation):
        stages.append(stages[-1].parent)
    return stages[::-1]


def limit_of(stage: Stage) -> int:
    """Return the lowest limit that the chain names; the default if it names none."""
    limits = [one.limit_bytes for one in chain(stage) if isinstance(one, LimitMemory)]
    return min(limits, default=DEFAULT_LIMIT_BYTES)


def _swept_bytes(run: Run, stage: Stage, orders: Orders) -> int | None:
    """Return what may be held to read ahead in sweeps: nothing after a death for want of memory."""
    if orders.prefetch is not None:
        return 0
    named = any(isinstance(one, LimitMemory) for one in chain(stage))
    if named or run.swept_bytes is not None:
        return run.swept_bytes
    return cacheable_bytes() // _SWEPT_PART


def bounded(run: Run, stage: Stage) -> Run:
    """Return a run that may hold what a stream's own limit allows, be that more than the default.

    Whoever supervises this process may have ordered less: after a death for want of memory.
    """
    limit, orders = limit_of(stage), received_orders() or Orders()
    allowed = replace(
        run,
        most_ahead=orders.prefetch,
        most_cached_bytes=orders.cache_bytes,
        swept_bytes=_swept_bytes(run, stage, orders),
    )
    # each thread works on a batch of its own, ahead of whoever waits for the first
    return replace(allowed, limit_bytes=limit, chunk_bytes=limit, threads=allowed.ahead(run.threads))
