"""Where workers run: what a launcher asks of whoever starts them, and the local processes that do it."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from anybatch.handover import Orders
from anybatch.memory import allowance, held
from anybatch.scale.launch_outcome import Outcome, forget_outcome, read_outcome
from anybatch.scale.launch_patience import Written, written_in
from anybatch.scale.launch_policy import GO_ON
from anybatch.train.workers import forget_to_stop, tell_to_stop, told_state_folder

Say = Callable[[int, str, bool], None]
"""Takes a worker's number, a line that it printed, and whether it was an error."""

_SIGNALLED = 128


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one worker is to do."""

    rank: int
    folder: Path
    command: tuple[str, ...]
    environment: Mapping[str, str]
    orders: Orders


class Running(Protocol):
    """A worker that was started."""

    def poll(self) -> Outcome | None:
        """Return how it ended; None while it runs."""

    def stop(self) -> None:
        """Tell it that another worker is gone: it ends at its last update."""

    def written(self) -> Written:
        """Return what there is of its states."""

    def signal(self, number: int) -> None:
        """Pass a signal on to it."""

    def kill(self) -> None:
        """End it at once, with all its processes."""


class Places(Protocol):
    """Somebody who has places for workers."""

    def addresses(self, count: int) -> list[str]:
        """Return where so many workers will listen to each other; other ones for every start."""

    def memory_bytes(self, count: int) -> int | None:
        """Return what each of so many workers may hold; None if only their machines know."""

    def start(self, assignment: Assignment, say: Say) -> Running:
        """Start one of them."""

    def close(self) -> None:
        """Give the places back."""


class LocalPlaces:
    """Ordinary processes on this machine, which talk over the loopback."""

    def addresses(self, count: int) -> list[str]:
        """Return free ports: all are held until the last is found, so that no two are the same."""
        with ExitStack() as held:
            return [f"127.0.0.1:{free_port(held)}" for _ in range(count)]

    def memory_bytes(self, count: int) -> int:
        """Return an equal share of what this process may hold and does not."""
        return (allowance().limit_bytes - held().counted_bytes) // count

    def start(self, assignment: Assignment, say: Say) -> Running:
        """Start one as a child of this process."""
        return LocalWorker(assignment, say)

    def close(self) -> None:
        """Nothing is held."""


def free_port(held: ExitStack, host: str = "127.0.0.1") -> int:
    """Return a port that nobody listens on; it is taken until `held` is closed."""
    listener = held.enter_context(socket.socket())
    listener.bind((host, 0))
    return int(listener.getsockname()[1])


class LocalWorker:
    """A supervised script in a session of its own: the terminal's signals reach the launcher alone."""

    def __init__(self, assignment: Assignment, say: Say) -> None:
        self._rank = assignment.rank
        self._folder = assignment.folder
        self._folder.mkdir(parents=True, exist_ok=True)
        forget_outcome(self._folder)
        forget_to_stop(self._folder)
        assignment.orders.write(self._folder)
        self._process = subprocess.Popen(
            [sys.executable, *assignment.command],
            env={**os.environ, **assignment.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._readers = [
            _reading(pipe, self._rank, say, is_error=pipe is self._process.stderr)
            for pipe in (self._process.stdout, self._process.stderr)
            if pipe is not None
        ]

    def poll(self) -> Outcome | None:
        """Return how it ended, once all that it printed was heard."""
        code = self._process.poll()
        if code is None:
            return None
        for reader in self._readers:
            # a grandchild may hold the pipe for longer than anybody wants to wait
            reader.join(timeout=2)
        return read_outcome(self._folder) or _without_words(self._rank, code)

    def stop(self) -> None:
        """Tell it that another worker is gone."""
        tell_to_stop(self._folder)

    def written(self) -> Written:
        """Return what there is of its states: what it writes shows there."""
        return written_in(told_state_folder(self._folder))

    def signal(self, number: int) -> None:
        """Pass a signal on to its supervisor, which passes it on to the script."""
        with suppress(OSError):
            self._process.send_signal(number)

    def kill(self) -> None:
        """End the supervisor; its script ends with it."""
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)


def _without_words(rank: int, code: int) -> Outcome:
    if code >= 0:
        return Outcome(rank, code or 1, f"it could not be started (exit code {code})", ended=time.time())
    told = f"its supervisor was killed (signal {-code})"
    return Outcome(rank, _SIGNALLED - code, told, GO_ON, curable=True, ended=time.time())


def _reading(pipe: IO[bytes], rank: int, say: Say, *, is_error: bool) -> threading.Thread:
    def read() -> None:
        for line in pipe:
            say(rank, line.decode(errors="replace").rstrip("\n"), is_error)

    reader = threading.Thread(target=read, name=f"worker-{rank}-output", daemon=True)
    reader.start()
    return reader


def lines_to(out: IO[str], errors: IO[str], ranks: Sequence[int]) -> Say:
    """Return a function that prints a worker's line behind its number."""
    width = len(str(max(ranks, default=0)))
    alone = threading.Lock()

    def say(rank: int, line: str, is_error: bool) -> None:
        target = errors if is_error else out
        with alone:
            target.write(f"[{rank:>{width}}] {line}\n")
            target.flush()

    return say
