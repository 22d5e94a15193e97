"""Workers on a Ray cluster: an actor holds each place, and starts a process there as is done here."""

import os
import signal
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from anybatch.errors import AnybatchError
from anybatch.scale.launch_outcome import Outcome
from anybatch.scale.launch_patience import Written
from anybatch.scale.launch_policy import GO_ON
from anybatch.scale.ray_engine import connected
from anybatch.scale.workers_places import Assignment, LocalWorker, Running, Say, free_port

_LOOK_SECONDS = 30.0
"""How long an actor that runs may take to answer."""

_AGAIN_SECONDS = 1.0

_GONE = 128 + signal.SIGKILL

Heard = list[tuple[int, str, bool]]


class NoPlace(AnybatchError, TimeoutError):
    """A cluster has fewer free places than there are workers."""

    def __init__(self, workers: int, free: float, seconds: float) -> None:
        super().__init__(workers, free, seconds)
        self.workers = workers
        self.free = free
        self.seconds = seconds

    def __str__(self) -> str:
        return (
            f"{self.workers} workers need a processor each, and in {self.seconds:,.0f} s the Ray cluster had "
            f"no place for all: {self.free:.0f} are free; start more nodes, or fewer workers"
        )


class RayPlaces:
    """One actor per worker, spread over the nodes; new ones for every start."""

    def __init__(self, address: str | None, *, patience_seconds: float) -> None:
        self._held = ExitStack()
        self._held.enter_context(connected(address))
        import ray

        self._ray = ray
        self._patience_seconds = patience_seconds
        self._actors: list[Any] = []

    def addresses(self, count: int) -> list[str]:
        """Return where the actors will let their workers listen."""
        until = time.monotonic() + self._patience_seconds
        while (left := until - time.monotonic()) > 0:
            self._place(count)
            asked = [actor.address.remote() for actor in self._actors]
            try:
                return list(self._ray.get(asked, timeout=left))
            except self._ray.exceptions.RayActorError:
                # a node went while they were placed; the next ones go elsewhere
                time.sleep(min(_AGAIN_SECONDS, left))
            except self._ray.exceptions.GetTimeoutError:
                break
        free = self._ray.available_resources().get("CPU", 0)
        raise NoPlace(count, free, self._patience_seconds)

    def _place(self, count: int) -> None:
        self._end_actors()
        place = self._ray.remote(_Place)
        gpus = int(self._ray.cluster_resources().get("GPU", 0) >= count)
        self._actors = [
            place.options(num_cpus=1, num_gpus=gpus, scheduling_strategy="SPREAD").remote()
            for _ in range(count)
        ]

    def memory_bytes(self, count: int) -> None:
        """Return nothing: a worker may hold what its node allows."""

    def start(self, assignment: Assignment, say: Say) -> Running:
        """Start one worker where its actor is."""
        return _RayWorker(self._ray, self._actors[assignment.rank], assignment, say)

    def close(self) -> None:
        """Let the actors go, and the cluster, if it was started here."""
        self._end_actors()
        self._held.close()

    def _end_actors(self) -> None:
        for actor in self._actors:
            with suppress(Exception):
                self._ray.kill(actor)
        self._actors = []


class _Place:
    """Runs on a node: one worker as an ordinary process, looked at from elsewhere."""

    def __init__(self) -> None:
        self._worker: LocalWorker | None = None
        self._heard: Heard = []

    def address(self) -> str:
        import ray

        host = ray.util.get_node_ip_address()
        with ExitStack() as held:
            return f"{host}:{free_port(held, host)}"

    def start(self, assignment: Assignment, here: str) -> None:
        # relative paths mean the same as where the command was given
        os.chdir(here)
        self._worker = LocalWorker(assignment, lambda *said: self._heard.append(said))

    def look(self) -> tuple[Heard, Outcome | None]:
        """Return what was printed since the last look, and how the worker ended if it has."""
        outcome = None if self._worker is None else self._worker.poll()
        heard, self._heard = self._heard, []
        return heard, outcome

    def stop(self) -> None:
        if self._worker is not None:
            self._worker.stop()

    def written(self) -> Written:
        return Written() if self._worker is None else self._worker.written()

    def signal(self, number: int) -> None:
        if self._worker is not None:
            self._worker.signal(number)

    def kill(self) -> None:
        if self._worker is not None:
            self._worker.kill()


class _RayWorker:
    """One worker, through its actor."""

    def __init__(self, ray: Any, actor: Any, assignment: Assignment, say: Say) -> None:
        self._ray = ray
        self._actor = actor
        self._rank = assignment.rank
        self._say = say
        self._start = actor.start.remote(assignment, str(Path.cwd()))

    def poll(self) -> Outcome | None:
        """Print what the worker said, and return how it ended; None while it runs."""
        try:
            self._ray.get(self._start, timeout=_LOOK_SECONDS)
            heard, outcome = self._ray.get(self._actor.look.remote(), timeout=_LOOK_SECONDS)
        except self._ray.exceptions.RayActorError as error:
            return _gone(self._rank, str(error).strip().splitlines()[0])
        except self._ray.exceptions.GetTimeoutError:
            return _gone(self._rank, f"its actor did not answer for {_LOOK_SECONDS:.0f} s")
        except self._ray.exceptions.RayTaskError as error:
            # its node does not see the folder that the command was given in, or cannot write there
            told = f"it could not be started: {type(error.cause).__name__}: {error.cause}"
            return Outcome(self._rank, os.EX_OSERR, told, ended=time.time())
        for said in heard:
            self._say(*said)
        return outcome  # type: ignore[no-any-return]

    def stop(self) -> None:
        """Tell the worker that another one is gone."""
        self._actor.stop.remote()

    def written(self) -> Written:
        """Return what the worker's node shows of its states."""
        try:
            return self._ray.get(self._actor.written.remote(), timeout=_LOOK_SECONDS)  # type: ignore[no-any-return]
        except (self._ray.exceptions.RayActorError, self._ray.exceptions.GetTimeoutError):
            # the next look at the worker tells
            return Written()

    def signal(self, number: int) -> None:
        """Pass a signal on to the worker."""
        self._actor.signal.remote(number)

    def kill(self) -> None:
        """End the worker, and its actor."""
        self._actor.kill.remote()


def _gone(rank: int, why: str) -> Outcome:
    """Return the end of a worker whose node, or actor, is not there any more: it can go on elsewhere."""
    told = f"its place on the Ray cluster is gone ({why})"
    return Outcome(rank, _GONE, told, GO_ON, curable=True, ended=time.time())
