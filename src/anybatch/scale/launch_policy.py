"""What to do when workers have ended: plain values in, a decision out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anybatch.handover import Orders
from anybatch.scale.launch_outcome import Outcome

GO_ON = "all continue from the last state"
_SIGNALLED = 128
_EARLY = "had finished by then, again: all workers have to make the same calls of fit"


@dataclass(frozen=True, slots=True)
class End:
    """How one attempt ended. `signal`: the one that told all of them to end.

    `silent` are those that had to be ended because they went on, or hung, when another was gone.
    """

    outcomes: tuple[Outcome, ...]
    signal: int | None = None
    silent: frozenset[int] = frozenset()

    @property
    def guilty(self) -> list[Outcome]:
        """Those that ended of their own accord, the first one first."""
        found = [one for one in self.outcomes if not (one.finished or one.lost or one.rank in self.silent)]
        return sorted(found, key=lambda one: one.ended)

    @property
    def early(self) -> list[int]:
        """Those that finished though the others, who have lost them, did not."""
        return [] if self.guilty or self.silent else [one.rank for one in self.outcomes if one.finished]


@dataclass(frozen=True, slots=True)
class Again:
    """Start all of them again, each under its own orders."""

    orders: tuple[Orders, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Over:
    """Leave it, with this exit code."""

    code: int
    why: str = ""


def decided(
    end: End, orders: Sequence[Orders], *, attempts: int, retries: int, early: int = 0
) -> Again | Over:
    """Return what follows the end of all workers; `attempts`: how many times they were started.

    `early`: in how many of them somebody finished whom the others still waited for.
    """
    if all(outcome.finished for outcome in end.outcomes):
        return Over(0)
    if end.signal is not None:
        return Over(_SIGNALLED + end.signal, f"told to end (signal {end.signal}); the same command continues")
    guilty, who = end.guilty, _named(end)
    if guilty and not guilty[0].curable:
        return Over(guilty[0].code, _joined(who, guilty[0].why))
    if early > 1 and end.early:
        return Over(_code(end), _joined(who, f"{_workers(end.early)} {_EARLY}"))
    if attempts > retries:
        why = f"that was the last of {retries} restarts; --retries allows more"
        return Over(_code(end), _joined(who, why))
    following = [_following(one, old) for one, old in zip(end.outcomes, orders, strict=True)]
    return Again(tuple(following), _joined(who, guilty[0].why if guilty else GO_ON))


def _following(outcome: Outcome, before: Orders) -> Orders:
    """Return the next orders of a worker: its own where it ran out of memory, else the old ones."""
    return outcome.then or replace(before, attempt=before.attempt + 1)


def _named(end: End) -> str:
    """Say which worker ended, and why; if none did, which one did not answer, or who lost it."""
    if end.guilty:
        return "; ".join(f"worker {one.rank}: {one.sentence}" for one in end.guilty)
    if end.silent:
        return f"{_workers(sorted(end.silent))} did not answer the others and was ended"
    lost = [one for one in end.outcomes if one.lost]
    return "; ".join(f"worker {one.rank}: {one.sentence}" for one in lost)


def _workers(ranks: Sequence[int]) -> str:
    return f"worker{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"


def _joined(*texts: str) -> str:
    return "; ".join(text for text in texts if text)


def _code(end: End) -> int:
    return next(one.code for one in [*end.guilty, *end.outcomes] if not one.finished)
