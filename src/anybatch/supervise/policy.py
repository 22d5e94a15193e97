"""What to do after an attempt: plain values in, a decision out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anybatch.handover import Orders
from anybatch.supervise.growth import Growth
from anybatch.supervise.verdict import OF_MEMORY, Cause, Verdict
from anybatch.units import size


@dataclass(frozen=True, slots=True)
class Attempt:
    """One life of the child, as far as deciding needs it."""

    orders: Orders
    verdict: Verdict
    trained: bool = False
    """Whether it ever reached `ab.fit`, its trials included: else nothing says that a restart would help."""
    first_step: int = 0
    last_step: int = 0
    part: int = 0
    """The largest part in use when it ended; 0 before the first step."""
    growth: Growth | None = None


@dataclass(frozen=True, slots=True)
class Restart:
    """Try again, under these orders."""

    orders: Orders
    why: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Leave it."""

    why: str


WITHOUT_PROGRESS = 3
"""So many attempts in a row may end before a step that none has reached before."""
_FIRST_PREFETCH = 2
_FIRST_CACHE_FRACTION = 8
_SMALLEST_CACHE_BYTES = 1 << 20

_ADVICE = {
    Cause.FINISHED: "",
    Cause.TOLD_TO_END: "the same command continues it",
    Cause.DOES_NOT_FIT: "a restart would meet the same wall",
    Cause.DISK_FULL: "free some space; the same command then continues",
    Cause.USED_UP: "a higher ulimit; the same command then continues",
    Cause.CRASH: "a restart would not cure that; the same command continues once it is mended",
    Cause.BUG: "a restart would not cure that; the same command continues once it is mended",
    Cause.EXIT_CODE: "a script that ends itself is not restarted",
}


def next_try(attempts: Sequence[Attempt], *, retries: int) -> Restart | Stop:
    """Return what to do after the last of the attempts. `retries`: how many restarts there may be in all."""
    last = attempts[-1]
    if last.verdict.cause in _ADVICE:
        return Stop(_ADVICE[last.verdict.cause])
    if not any(attempt.trained for attempt in attempts):
        return Stop("the script has not reached ab.fit, so there is nothing to continue from: no restart")
    if len(attempts) > retries:
        return Stop(f"that was the last of {retries} restarts; --retries allows more")
    if _stuck(attempts):
        return Stop(f"{WITHOUT_PROGRESS} attempts in a row ended before a new step")
    if last.verdict.cause in OF_MEMORY:
        return _after_memory(last)
    return Restart(_following(last.orders), "it continues from the last state")


def after_silence(
    began: Orders, *, held_bytes: int, limit_bytes: int, part: int, machine_restarted: bool = False
) -> Restart:
    """Return how to start when the last start ended without a word, the supervisor dead as well."""
    if machine_restarted:
        why = "the machine was restarted since the last run began"
        return Restart(_following(began), f"{why}; it continues from the last state")
    told = "the last run ended together with its supervisor"
    if held_bytes < limit_bytes * 0.8:
        return Restart(_following(began), f"{told}, at {size(held_bytes)}; it continues from the last state")
    why = f"{told}, probably killed for memory: it held {size(held_bytes)} of {size(limit_bytes)}"
    smaller = _smaller(began, part, limit_bytes)
    return Restart(_following(smaller or began), f"{why}; it continues {_told(smaller or began)}")


def _after_memory(last: Attempt) -> Restart | Stop:
    limit_bytes = last.orders.limit_bytes or 0
    if last.growth is not None:
        # smaller parts only delay what a leak does; a fresh process undoes it
        lasts = last.growth.steps_within(limit_bytes)
        why = f"{last.growth}: that is a leak, and smaller parts would not help; a fresh process"
        return Restart(_following(last.orders), f"{why} lasts some {lasts:,} steps")
    smaller = _smaller(last.orders, last.part, limit_bytes)
    if smaller is None:
        return Stop(f"{_least(last.orders)}: {size(limit_bytes)} is too little")
    return Restart(_following(smaller), f"it continues {_told(smaller)}")


def _least(orders: Orders) -> str:
    """Return how it ran when there was nothing less to try."""
    if orders.largest_part is None:
        return "memory ran out before the first batch was there, with one ahead and no cache"
    return "it already ran one sample at a time, without prefetch or cache"


def _smaller(orders: Orders, part: int, limit_bytes: int) -> Orders | None:
    """Return orders that need less of everything; None if there is no less."""
    known = part or orders.largest_part
    smaller = replace(
        orders,
        largest_part=None if known is None else max(1, known // 2),
        prefetch=_FIRST_PREFETCH if orders.prefetch is None else max(1, orders.prefetch // 2),
        cache_bytes=_smaller_cache(orders.cache_bytes, limit_bytes),
    )
    return None if smaller == orders else smaller


def _smaller_cache(cache_bytes: int | None, limit_bytes: int) -> int:
    wanted = limit_bytes // _FIRST_CACHE_FRACTION if cache_bytes is None else cache_bytes // 4
    return wanted if wanted >= _SMALLEST_CACHE_BYTES else 0


def _following(orders: Orders) -> Orders:
    return replace(orders, attempt=orders.attempt + 1)


def _stuck(attempts: Sequence[Attempt]) -> bool:
    # who is killed by somebody else is not to blame for it
    guilty = [attempt for attempt in attempts if attempt.verdict.cause is not Cause.KILLED]
    latest, before = guilty[-WITHOUT_PROGRESS:], guilty[:-WITHOUT_PROGRESS]
    if len(latest) < WITHOUT_PROGRESS:
        return False
    if len({attempt.orders.largest_part for attempt in latest}) > 1:
        # each of them was tried smaller than the one before: that is progress of another kind
        return False
    reached = max([attempt.last_step for attempt in before] + [latest[0].first_step])
    return all(attempt.last_step <= reached for attempt in latest)


def _told(orders: Orders) -> str:
    parts = "" if orders.largest_part is None else f"parts of at most {orders.largest_part:,} samples, "
    cache = (
        "no cache in memory" if not orders.cache_bytes else f"a cache of at most {size(orders.cache_bytes)}"
    )
    ahead = "one batch" if orders.prefetch == 1 else f"{orders.prefetch} batches"
    return f"with {parts}{ahead} ahead and {cache}"
