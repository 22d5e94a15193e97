"""One life of the child: start it, watch it, and collect what was seen when it ends."""

import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from anybatch.handover import (
    FOLDER_VARIABLE,
    Orders,
    Pulse,
    forget_pulse,
    read_last_words,
    reserve_last_words,
)
from anybatch.memory import loud_environment, predictable_environment
from anybatch.supervise.environment import GROUP_VARIABLE, PARENT_VARIABLE
from anybatch.supervise.growth import growth_of
from anybatch.supervise.observe import (
    Listener,
    Sample,
    Scale,
    address_fraction,
    descendants,
    is_stopped,
    kills_around,
    machine_kills,
    pressure_in,
)
from anybatch.supervise.own_group import OwnGroup, own_group
from anybatch.supervise.policy import Attempt
from anybatch.supervise.relay import ENDING, Relay, reached_the_child_already
from anybatch.supervise.tell import Teller
from anybatch.supervise.trail import Trail
from anybatch.supervise.verdict import NEARLY_FULL, Evidence, Verdict

PATIENCE_SECONDS = 600.0
"""How long training may be silent."""
_EVERY_SECONDS = 0.1
# there the kernel watches: a look is for who reads the line, and costs a millisecond
_IN_A_GROUP_SECONDS = 0.2
# without a group of its own only the supervisor stands between the child and the machine
_NEAR_THE_LIMIT_SECONDS = 0.01
_SHOW_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be run, and within which bounds."""

    script: str
    arguments: tuple[str, ...]
    folder: Path
    limit_bytes: int
    group_limit_bytes: int
    """A little above the limit, where possible: page tables and buffers of the kernel count in a group."""
    patience_seconds: float = PATIENCE_SECONDS
    script_prints_to_stderr: bool = False


@dataclass(frozen=True, slots=True)
class Life:
    """What was seen of one child."""

    evidence: Evidence
    samples: list[Sample]
    pulse: Pulse | None
    first_step: int


@dataclass(slots=True)
class _Seen:
    """What adds up while a child lives."""

    trail: Trail = field(default_factory=Trail)
    address_fraction: float = 0.0
    told_to_end: int | None = None
    over_limit: bool = False
    silence_seconds: float | None = None


def attempt_of(orders: Orders, life: Life, verdict: Verdict) -> Attempt:
    """Return what deciding needs of a life."""
    pulse = life.pulse or Pulse()
    points = [(sample.step, sample.held_bytes) for sample in life.samples if sample.step]
    return Attempt(
        orders=orders,
        verdict=verdict,
        trained=life.pulse is not None and pulse.reached_fit,
        first_step=life.first_step,
        last_step=pulse.step,
        part=pulse.part,
        growth=growth_of(points, life.evidence.limit_bytes),
    )


def run_attempt(task: Task, orders: Orders, relay: Relay, tell: Teller) -> Life:
    """Start the script, wait until it has ended, and return what was seen. Leaves no process behind it."""
    forget_pulse(task.folder)
    reserve_last_words(task.folder)
    orders.write(task.folder)
    own = own_group(task.group_limit_bytes)
    tell.began(orders, own if isinstance(own, str) else None)
    try:
        group = own if isinstance(own, OwnGroup) else None
        return _Watch(task, orders.attempt, group, relay, tell).until_the_end()
    finally:
        if isinstance(own, OwnGroup):
            own.remove()


class _Watch:
    def __init__(self, task: Task, attempt: int, own: OwnGroup | None, relay: Relay, tell: Teller) -> None:
        self._task = task
        self._own = own
        self._group = None if own is None else own.group
        self._relay = relay
        self._tell = tell
        self._scale = Scale(self._group)
        self._listener = Listener(task.folder)
        self._seen = _Seen()
        self._kills_before = (kills_around(), machine_kills())
        self._child = _started(task, attempt, own)
        self._shown = 0.0

    def until_the_end(self) -> Life:
        while (status := self._ended()) is None:
            self._look()
            self._relay.wait(self._pause_seconds())
            for number in self._relay.taken():
                self._pass_on(number)
        # its last sign of life may be younger than our last look
        self._listener.listen(time.monotonic(), halted=False)
        evidence = self._evidence(status)
        if evidence.exit_code != 0:
            self._end_all()
        pulse = self._listener.pulse
        return Life(evidence, self._seen.trail.samples, pulse, self._listener.first_step or 0)

    def _ended(self) -> int | None:
        """Return the child's status once there is one. Orphans of the child come to us and are buried too."""
        status = None
        with suppress(ChildProcessError):
            while True:
                process, found = os.waitpid(-1, os.WNOHANG)
                if process == 0:
                    break
                status = found if process == self._child else status
        return status

    def _look(self) -> None:
        now = time.monotonic()
        silence = self._listener.listen(now, halted=is_stopped(self._child))
        pulse = self._listener.pulse or Pulse()
        held_bytes = self._held_bytes(now)
        sample = Sample(now, held_bytes, pulse.step, pulse.part, pressure_in(self._group))
        self._seen.trail.add(sample)
        self._seen.address_fraction = max(self._seen.address_fraction, address_fraction(self._child))
        if now - self._shown >= _SHOW_SECONDS:
            self._tell.looked(sample, pulse, self._task.limit_bytes)
            self._shown = now
        self._judge(held_bytes, silence)

    def _held_bytes(self, now: float) -> int:
        found = self._scale.held_bytes(now)
        if self._own is not None or found <= self._task.limit_bytes:
            return found
        # before anybody is ended for it: forked processes share pages that count for each of them
        fairly = self._scale.fairly_held_bytes()
        return found if fairly is None else min(found, fairly)

    def _judge(self, held_bytes: int, silence_seconds: float) -> None:
        if self._own is None and held_bytes > self._task.limit_bytes:
            self._seen.over_limit = True
            self._end_all()
        elif silence_seconds > self._task.patience_seconds:
            self._seen.silence_seconds = silence_seconds
            self._end_all()

    def _pause_seconds(self) -> float:
        if self._own is not None:
            return _IN_A_GROUP_SECONDS
        near = self._seen.trail.samples[-1].held_bytes > self._task.limit_bytes * NEARLY_FULL / 2
        return _NEAR_THE_LIMIT_SECONDS if near else _EVERY_SECONDS

    def _pass_on(self, number: int) -> None:
        if number in ENDING:
            self._seen.told_to_end = number
        if not reached_the_child_already(number):
            with suppress(OSError):
                os.kill(self._child, number)

    def _end_all(self) -> None:
        for process in descendants():
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        if self._own is not None:
            self._own.kill_all()

    def _peak_bytes(self) -> int:
        if self._group is None or not self._group.kills():
            return self._seen.trail.peak_bytes
        # before it kills, the kernel has dropped every file page: what was charged then was held
        return max(self._seen.trail.peak_bytes, self._group.peak_bytes() or 0)

    def _evidence(self, status: int) -> Evidence:
        code = os.waitstatus_to_exitcode(status)
        around_before, shared_before = self._kills_before
        return Evidence(
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            limit_bytes=self._task.limit_bytes,
            peak_bytes=self._peak_bytes(),
            address_fraction=self._seen.address_fraction,
            own_kills=None if self._group is None else self._group.kills(),
            around_kills=_rise(around_before, kills_around()),
            shared_kills=_rise(shared_before, machine_kills()),
            last_words=read_last_words(self._task.folder),
            told_to_end=self._seen.told_to_end,
            ended_over_limit=self._seen.over_limit,
            ended_for_silence_seconds=self._seen.silence_seconds,
        )


def _rise(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else now - before


def _started(task: Task, attempt: int, own: OwnGroup | None) -> int:
    command = [sys.executable, "-m", "anybatch.supervise.child", task.script, *task.arguments]
    # what keeps memory low costs time: only for who has been short of it
    environment = (predictable_environment() if attempt > 1 else {}) | loud_environment() | dict(os.environ)
    environment |= {FOLDER_VARIABLE: str(task.folder), PARENT_VARIABLE: str(os.getpid())}
    if own is not None:
        environment[GROUP_VARIABLE] = str(own.entrance)
    actions = [(os.POSIX_SPAWN_DUP2, 2, 1)] if task.script_prints_to_stderr else []
    return os.posix_spawn(sys.executable, command, environment, file_actions=actions)
