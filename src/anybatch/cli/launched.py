"""The supervisor of one worker: `python -m anybatch.cli.launched FOLDER RANK SCRIPT ARGS…`.

It runs the script once, under the orders that lie in the folder, finds out why it ended, and writes that down
for the launcher, which may be on another machine.
"""

import ctypes
import signal
import sys
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from anybatch.handover import Journal, Json, Orders, Pulse, read_orders
from anybatch.scale.launch import BOOT
from anybatch.scale.launch_outcome import Outcome
from anybatch.supervise.attempt import PATIENCE_SECONDS, Life, Task, attempt_of, run_attempt
from anybatch.supervise.bounds import bounds_here
from anybatch.supervise.folder import adopt_orphans
from anybatch.supervise.observe import Sample
from anybatch.supervise.policy import Attempt, Restart, next_try
from anybatch.supervise.relay import Relay
from anybatch.supervise.tell import Summary
from anybatch.supervise.verdict import Cause, Verdict, judged
from anybatch.train.workers import PEER_SECONDS, PEER_VARIABLE, membership, seconds_of

_PR_SET_PDEATHSIG = 1
_SIGNALLED = 128
_WITHOUT_END = 1 << 30
"""Restarts are counted by the launcher."""

_GRACE_SECONDS = 60.0
_LOST = "anybatch.train.workers.PeerLost"


def main() -> None:
    """Run one worker once."""
    folder, rank, script, *arguments = sys.argv[1:]
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    adopt_orphans()
    orders = read_orders(Path(folder)) or Orders()
    task = _task(Path(folder), orders, script, arguments)
    with Relay() as relay:
        life = run_attempt(task, _kept_within(task, orders), relay, _Quiet())
    outcome = _judged(int(rank), orders, life, Journal(Path(folder)))
    outcome.write(Path(folder))
    sys.exit(outcome.code)


def _task(folder: Path, orders: Orders, script: str, arguments: list[str]) -> Task:
    bounds = bounds_here(orders.limit_bytes)
    return Task(
        script=str(BOOT),
        arguments=(script, *arguments),
        folder=folder,
        limit_bytes=bounds.limit_bytes,
        group_limit_bytes=bounds.group_limit_bytes,
        # who waits for another worker is silent, and gives up by itself
        patience_seconds=max(PATIENCE_SECONDS, seconds_of(PEER_VARIABLE, PEER_SECONDS) + _GRACE_SECONDS),
    )


def _kept_within(task: Task, orders: Orders) -> Orders:
    """Return orders that promise no more than this machine allows; where they name no limit, none is named.

    For this life alone: the launcher keeps its own, as another start may find more.
    """
    if orders.limit_bytes is None:
        return orders
    return replace(orders, limit_bytes=min(orders.limit_bytes, task.limit_bytes))


def _judged(rank: int, orders: Orders, life: Life, journal: Journal) -> Outcome:
    verdict, words = judged(life.evidence), life.evidence.last_words
    lost = words is not None and _LOST in words.kinds
    attempt = attempt_of(orders, life, replace(verdict, cause=_in_company(verdict.cause, lost=lost)))
    before = [_read(entry) for entry in journal.entries()]
    journal.add(_told(attempt))
    decision = next_try([*before, attempt], retries=_WITHOUT_END)
    seen = life.evidence
    return Outcome(
        rank=rank,
        code=_SIGNALLED + (seen.signal or 0) if seen.exit_code is None else seen.exit_code,
        sentence=verdict.sentence,
        why=decision.why,
        lost=lost,
        curable=isinstance(decision, Restart),
        then=decision.orders if isinstance(decision, Restart) else None,
        ended=time.time(),
    )


def _in_company(cause: Cause, *, lost: bool) -> Cause:
    """Return what a cause means for one of several workers."""
    if lost:
        return Cause.KILLED
    if cause is Cause.CRASH and membership() is not None:
        # once in 48 cuts of a line TensorFlow 2.21 aborted ("Mutex corrupt", over the name of a remote call)
        # where its collective timed out: the network's doing, not the script's
        return Cause.CRASH_IN_COMPANY
    return cause


def _told(attempt: Attempt) -> Json:
    return {**asdict(attempt), "growth": None}


def _read(entry: Json) -> Attempt:
    verdict = Verdict(Cause(entry["verdict"]["cause"]), entry["verdict"]["sentence"])
    return Attempt(**{**entry, "orders": Orders(**entry["orders"]), "verdict": verdict})


class _Quiet:
    """Nobody looks at one worker's supervisor: the launcher speaks for all."""

    def note(self, text: str) -> None: ...
    def began(self, orders: Orders, no_group: str | None) -> None: ...
    def looked(self, sample: Sample, pulse: Pulse, limit_bytes: int) -> None: ...
    def ended(self, orders: Orders, verdict: Verdict, then: str) -> None: ...
    def over(self, summary: Summary) -> None: ...


if __name__ == "__main__":
    main()
