"""Attempt after attempt, until the script has finished or a restart cannot help."""

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from anybatch.handover import Journal, Json, Occupied, Orders, Pulse, alone_in, new_run, read_pulse
from anybatch.supervise.attempt import PATIENCE_SECONDS, Life, Task, attempt_of, run_attempt
from anybatch.supervise.bounds import bounds_here
from anybatch.supervise.folder import STATE, AlreadyRuns, adopt_orphans, clear, run_folder
from anybatch.supervise.observe import boot, restarted_since
from anybatch.supervise.policy import Attempt, Restart, Stop, after_silence, next_try
from anybatch.supervise.relay import Relay
from anybatch.supervise.tell import Summary, Teller
from anybatch.supervise.timeline import Chapter, write_timeline
from anybatch.supervise.verdict import judged

DEFAULT_RETRIES = 10
_SIGNALLED = 128
# what a machine has to spare is never twice the same
_CLEARLY_MORE = 1.25


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user asked for."""

    script: str
    arguments: tuple[str, ...] = ()
    memory_bytes: int | None = None
    retries: int = DEFAULT_RETRIES
    report: Path | None = None
    folder: Path | None = None
    """Where the papers of runs are kept; None: beside the script."""
    patience_seconds: float = PATIENCE_SECONDS
    script_prints_to_stderr: bool = False


@dataclass(slots=True)
class _Story:
    began_seconds: float = field(default_factory=time.monotonic)
    attempts: list[Attempt] = field(default_factory=list)
    chapters: list[Chapter] = field(default_factory=list)
    peak_bytes: int = 0


def supervise(settings: Settings, tell: Teller) -> int:
    """Run a script to its end, restarting what a restart can cure; return the exit code to end with."""
    folder = run_folder(settings.script, settings.arguments, settings.folder)
    adopt_orphans()
    try:
        with alone_in(folder), Relay() as relay:
            return _supervised(_task(settings, folder), settings, relay, tell)
    except Occupied:
        raise AlreadyRuns(str(folder)) from None


def _supervised(task: Task, settings: Settings, relay: Relay, tell: Teller) -> int:
    story = _Story()
    code = _attempts(task, settings, relay, tell, story)
    _conclude(settings, task, story, code, tell)
    return code


def _task(settings: Settings, folder: Path) -> Task:
    bounds = bounds_here(settings.memory_bytes)
    return Task(
        script=settings.script,
        arguments=settings.arguments,
        folder=folder,
        limit_bytes=bounds.limit_bytes,
        group_limit_bytes=bounds.group_limit_bytes,
        patience_seconds=settings.patience_seconds,
        script_prints_to_stderr=settings.script_prints_to_stderr,
    )


def _attempts(task: Task, settings: Settings, relay: Relay, tell: Teller, story: _Story) -> int:
    journal = Journal(task.folder)
    orders = _first_orders(task, journal.entries(), tell)
    while True:
        journal.add({"event": "began", "orders": asdict(orders), "boot": boot(), "time": time.time()})
        life = run_attempt(task, orders, relay, tell)
        attempt = attempt_of(orders, life, judged(life.evidence))
        story.attempts.append(attempt)
        decision = next_try(story.attempts, retries=settings.retries)
        _write_down(story, journal, attempt, life, decision)
        tell.ended(orders, attempt.verdict, decision.why)
        if isinstance(decision, Stop):
            return _code(life)
        orders = decision.orders


def _first_orders(task: Task, entries: Sequence[Json], tell: Teller) -> Orders:
    """Return how to begin: afresh, or as the run before this one would have gone on."""
    fresh = Orders(run=new_run(), state_folder=str(task.folder / STATE), limit_bytes=task.limit_bytes)
    began = _orders_in(entries)
    if began is None:
        return fresh
    going_on = _with_what_was_learnt(fresh, began)
    if entries[-1].get("event") == "ended":
        return going_on if entries[-1].get("then") else replace(going_on, run=fresh.run)
    pulse = read_pulse(task.folder) or Pulse()
    restart = after_silence(
        replace(going_on, attempt=0),
        held_bytes=pulse.held_bytes,
        limit_bytes=began.limit_bytes or task.limit_bytes,
        part=pulse.part,
        machine_restarted=restarted_since(entries[-1].get("boot", ""), entries[-1].get("time", 0.0)),
    )
    tell.note(restart.why)
    return restart.orders


def _with_what_was_learnt(fresh: Orders, began: Orders) -> Orders:
    """Return orders that keep the bounds found necessary, unless there is clearly more memory now."""
    if (fresh.limit_bytes or 0) > _CLEARLY_MORE * (began.limit_bytes or 0):
        return replace(fresh, run=began.run)
    return replace(began, attempt=1, limit_bytes=fresh.limit_bytes, state_folder=fresh.state_folder)


def _orders_in(entries: Sequence[Json]) -> Orders | None:
    for entry in reversed(entries):
        orders = entry.get("then") or entry.get("orders")
        try:
            if orders:
                return Orders(**orders)
        except TypeError:
            # written by another version
            continue
    return None


def _write_down(
    story: _Story, journal: Journal, attempt: Attempt, life: Life, decision: Restart | Stop
) -> None:
    story.peak_bytes = max(story.peak_bytes, life.evidence.peak_bytes)
    story.chapters.append(Chapter(attempt.orders, attempt.verdict, decision.why, tuple(life.samples)))
    journal.add(
        {
            "event": "ended",
            "attempt": attempt.orders.attempt,
            "cause": attempt.verdict.cause,
            "sentence": attempt.verdict.sentence,
            "last_step": attempt.last_step,
            "why": decision.why,
            "then": asdict(decision.orders) if isinstance(decision, Restart) else None,
        }
    )


def _code(life: Life) -> int:
    seen = life.evidence
    return _SIGNALLED + (seen.signal or 0) if seen.exit_code is None else seen.exit_code


def _conclude(settings: Settings, task: Task, story: _Story, code: int, tell: Teller) -> None:
    last = story.attempts[-1]
    summary = Summary(
        exit_code=code,
        cause=last.verdict.cause,
        restarts=len(story.attempts) - 1,
        last_step=max(attempt.last_step for attempt in story.attempts),
        peak_bytes=story.peak_bytes,
        limit_bytes=task.limit_bytes,
        seconds=round(time.monotonic() - story.began_seconds, 3),
    )
    if settings.report is not None:
        try:
            write_timeline(settings.report, settings.script, summary, story.chapters, story.began_seconds)
        except OSError as problem:
            # the script has ended as it has ended, whatever becomes of a page about it
            tell.note(f"the report could not be written: {problem}")
    tell.over(summary)
    if code == os.EX_OK:
        clear(task.folder)
