"""Several workers, attempt after attempt: all end when one does, and go on together from the last state."""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from anybatch.handover import Orders, alone_in, new_run
from anybatch.scale.launch_outcome import Outcome
from anybatch.scale.launch_patience import GRACE_SECONDS, Written, prolonged
from anybatch.scale.launch_policy import End, Over, decided
from anybatch.scale.workers_places import Assignment, Places, Running, Say
from anybatch.train.workers import CLUSTER_VARIABLE, JOIN_VARIABLE, PEER_VARIABLE, Membership

BOOT = Path(__file__).with_name("workers_boot.py")
_LAST_SECONDS = 5.0
_EVERY_SECONDS = 0.1
_ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})


@dataclass(frozen=True, slots=True)
class Launch:
    """What the user asked for. `member`: this process's place in a cluster that somebody else has started."""

    script: str
    arguments: tuple[str, ...]
    workers: int
    folder: Path
    command: tuple[str, ...]
    """What supervises one worker; the worker's folder, the script and its arguments follow."""
    member: Membership | None = None
    memory_bytes: int | None = None
    retries: int = 10
    join_seconds: float = 600.0
    peer_seconds: float = 300.0

    @property
    def ranks(self) -> range:
        """The workers that are started here."""
        return range(self.workers) if self.member is None else range(self.member.rank, self.member.rank + 1)

    @property
    def papers(self) -> Path:
        """The folder that nobody else may use: in a cluster, others may share the one above it."""
        return self.folder if self.member is None else self.folder / f"worker-{self.member.rank}"

    @property
    def state(self) -> Path:
        """Where `fit` keeps its state if the script names no folder; worker 0 alone uses it."""
        return self.folder / "state"


@dataclass(slots=True)
class Signals:
    """Who listens for signals: returns those that came since the last call."""

    taken: Callable[[], list[int]]
    wait: Callable[[float], None]


def launched(
    settings: Launch, places: Places, say: Say, note: Callable[[str], None], signals: Signals
) -> int:
    """Run a script on all workers to its end, and return the exit code."""
    papers = settings.papers
    papers.mkdir(parents=True, exist_ok=True)
    with alone_in(papers):
        code = _attempts(settings, places, say, note, signals)
    if code == os.EX_OK:
        _clear(settings)
    return code


def _attempts(
    settings: Launch, places: Places, say: Say, note: Callable[[str], None], signals: Signals
) -> int:
    orders = [_first_orders(settings, places)] * len(settings.ranks)
    attempts = early = 0
    while True:
        attempts += 1
        end = _Attempt(settings, places, orders, say, signals).until_all_ended()
        early += bool(end.early)
        decision = decided(end, orders, attempts=attempts, retries=settings.retries, early=early)
        if decision.why:
            note(decision.why)
        if isinstance(decision, Over):
            return decision.code
        orders = list(decision.orders)


def _first_orders(settings: Launch, places: Places) -> Orders:
    bounds = (settings.memory_bytes, places.memory_bytes(len(settings.ranks)))
    limit = min((bound for bound in bounds if bound is not None), default=None)
    return Orders(run=new_run(), state_folder=str(settings.state), limit_bytes=limit)


def _clear(settings: Launch) -> None:
    """Remove the papers of a run that has finished: the next one starts afresh."""
    shutil.rmtree(settings.papers, ignore_errors=True)
    if 0 in settings.ranks:
        shutil.rmtree(settings.state, ignore_errors=True)
    with suppress(OSError):
        settings.folder.rmdir()
        if settings.folder.parent.name.startswith("."):
            # beside the script; any other folder is the user's own
            settings.folder.parent.rmdir()


class _Attempt:
    """All workers, from their start until the last of them has ended."""

    def __init__(
        self, settings: Launch, places: Places, orders: Sequence[Orders], say: Say, signals: Signals
    ) -> None:
        self._signals = signals
        self._running: dict[int, Running] = {}
        self._outcomes: dict[int, Outcome] = {}
        self._deadline: float | None = None
        self._written: dict[int, Written] = {}
        self._silent: set[int] = set()
        self._signal: int | None = None
        for assignment in _assignments(settings, places, orders):
            self._running[assignment.rank] = places.start(assignment, say)

    def until_all_ended(self) -> End:
        while len(self._outcomes) < len(self._running):
            self._collect()
            for number in self._signals.taken():
                self._pass_on(number)
            self._hurry()
            self._signals.wait(_EVERY_SECONDS)
        outcomes = tuple(self._outcomes[rank] for rank in self._running)
        return End(outcomes, self._signal, frozenset(self._silent))

    def _collect(self) -> None:
        for rank, worker in self._running.items():
            outcome = None if rank in self._outcomes else worker.poll()
            if outcome is not None:
                self._outcomes[rank] = outcome
                if not outcome.finished and self._deadline is None:
                    self._stop()

    def _stop(self) -> None:
        """Let everybody end at the last update: worker 0 has a state to write."""
        self._deadline = time.monotonic() + GRACE_SECONDS
        for worker in self._left().values():
            worker.stop()

    def _pass_on(self, number: int) -> None:
        first = number in _ENDING and self._signal is None
        if first:
            self._signal = number
            self._deadline = time.monotonic() + _LAST_SECONDS
        for worker in self._left().values():
            if first and len(self._running) > 1:
                # several can end at their last update, which one that is in the middle of it cannot
                worker.stop()
            else:
                worker.signal(number)

    def _hurry(self) -> None:
        """End whoever is left, politely at first, once one has ended and the others had time to."""
        if self._deadline is None:
            return
        self._deadline = self._prolonged(self._deadline)
        if time.monotonic() < self._deadline:
            return
        for rank, worker in self._left().items():
            if rank in self._silent:
                worker.kill()
            else:
                worker.signal(signal.SIGTERM)
            self._silent.add(rank)
        self._deadline = time.monotonic() + _LAST_SECONDS

    def _prolonged(self, deadline: float) -> float:
        """Return a deadline that does not come while somebody visibly writes a state."""
        for rank, worker in self._left().items():
            seen = worker.written()
            deadline = prolonged(deadline, time.monotonic(), self._written.get(rank, seen), seen)
            self._written[rank] = seen
        return deadline

    def _left(self) -> dict[int, Running]:
        return {rank: one for rank, one in self._running.items() if rank not in self._outcomes}


def _assignments(settings: Launch, places: Places, orders: Sequence[Orders]) -> list[Assignment]:
    addresses = (
        places.addresses(settings.workers) if settings.member is None else list(settings.member.addresses)
    )
    return [
        Assignment(
            rank=rank,
            folder=settings.folder / f"worker-{rank}",
            command=(
                *settings.command,
                str(settings.folder / f"worker-{rank}"),
                str(rank),
                settings.script,
                *settings.arguments,
            ),
            environment=_environment(settings, addresses, rank),
            orders=one,
        )
        for rank, one in zip(settings.ranks, orders, strict=True)
    ]


def _environment(settings: Launch, addresses: Sequence[str], rank: int) -> dict[str, str]:
    environment = {
        JOIN_VARIABLE: str(settings.join_seconds),
        PEER_VARIABLE: str(settings.peer_seconds),
        "PYTHONUNBUFFERED": "1",
        # what TensorFlow says of itself, each worker would say
        "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"),
    }
    if settings.member is None:
        task = {"type": "worker", "index": rank}
        environment[CLUSTER_VARIABLE] = json.dumps({"cluster": {"worker": list(addresses)}, "task": task})
    return environment
