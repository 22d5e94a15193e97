"""Tasks on a Ray cluster: Ray places and watches them; what a dead worker or node left goes to another."""

import logging
import os
import socket
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from anybatch.scale.bundles import Bundle, bundled
from anybatch.scale.engine import Given, Made, Task, as_finished
from anybatch.scale.refusals import NobodyWorks, NoCluster, NoNodeFits, NoRay, TaskLost

Sent = TypeVar("Sent")
Returned = TypeVar("Returned")

# of one task; an error of the work itself is final, only the death of its worker is not
_TRIES = 4
# per processor of the cluster: one at work, one that is placed as soon as that is done
_AHEAD = 2
# Ray goes on with a worker only for a task that asks for exactly the same
_GRAIN_BYTES = 64 << 20
# Ray sends arguments up to 100 KB with their task, and keeps others where each node has to fetch them
_CARRIED_BYTES = 64 << 10
_LOOK_SECONDS = 1.0
_CONNECT_SECONDS = 10.0
_PATIENCE_SECONDS = 120.0


@contextmanager
def connected(address: str | None = None) -> Iterator["RayEngine"]:
    """Give an engine on the cluster at an address, on the one of `RAY_ADDRESS`, or on a new one here.

    Whoever has connected to Ray before stays connected.
    """
    ray = _ray()
    if ray.is_initialized():
        yield RayEngine()
        return
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    _check_that_somebody_listens(address or os.environ.get("RAY_ADDRESS"))
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise NoCluster(address, str(error).splitlines()[0]) from None
    try:
        yield RayEngine()
    finally:
        ray.shutdown()


def _check_that_somebody_listens(address: str | None) -> None:
    """Refuse an address at which nobody answers: Ray itself tries it for minutes, and may end the process."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise NoCluster(address, str(error)) from None


class RayEngine:
    """Tasks on the cluster that this process is connected to; all nodes see the same files."""

    def __init__(self, *, patience_seconds: float = _PATIENCE_SECONDS) -> None:
        self._ray = _ray()
        self._patience_seconds = patience_seconds
        # one for all phases of a job: workers fetch every new function, and are placed anew for it
        self._remote = self._ray.remote(_work_in)

    def run(
        self, work: Callable[[Given], Made], tasks: Iterable[Task[Given]]
    ) -> Generator[tuple[Task[Given], Made], None, None]:
        cluster = _Cluster(self._ray, self._patience_seconds)
        start = self._starting(work, cluster)
        under_way: dict[Any, _Sent[Given]] = {}
        try:
            for sent, handle in as_finished(
                map(_Sent, bundled(list(tasks), cluster.processors())),
                under_way,
                room=cluster.room,
                start=start,
                finished=cluster.answered,
            ):
                try:
                    value = self._value(next(handle))
                except self._ray.exceptions.RayError as error:
                    again = sent.again(str(error).splitlines()[0])
                    under_way[start(again)] = again
                    continue
                rest = sent.bundle.behind_the_first()
                if rest is not None:
                    under_way[handle] = _Sent(rest)
                yield sent.bundle.tasks[0], value
        finally:
            for handle in under_way:
                self._ray.cancel(handle)

    def _starting(
        self, work: Callable[[Given], Made], cluster: "_Cluster"
    ) -> Callable[["_Sent[Given]"], Any]:
        """Return what sends a bundle to some worker: that gives a generator of its values."""
        carried, here = self._carried(work), str(Path.cwd())

        def start(sent: _Sent[Given]) -> Any:
            bundle = sent.bundle
            cluster.check_room(bundle)
            options = self._remote.options(
                num_cpus=1,
                memory=_rounded(bundle),
                # every value comes as soon as it is there, so that no death costs one that is finished: Ray
                # would do the whole bundle again
                num_returns="streaming",
                max_retries=0,
                name=f"anybatch {bundle.what}",
                # otherwise Ray fills one node first, by what it last heard of the others: of 24 short jobs on
                # two nodes 8 ran on one of them alone, and of 18 so none
                scheduling_strategy="SPREAD",
            )
            return options.remote(here, carried, [task.given for task in bundle.tasks])

        return start

    def _carried(self, work: Callable[[Given], Made]) -> Any:
        """Return the work as tasks carry it: itself if it is small, else a reference to it, sent once."""
        small = len(self._ray.cloudpickle.dumps(work)) <= _CARRIED_BYTES
        return work if small else self._ray.put(work)

    def _value(self, reference: Any) -> Any:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            # the error of the work itself, as it would be here
            raise error.cause from None


@dataclass(frozen=True, slots=True)
class _Sent(Generic[Given]):
    """What is left of a bundle that is under way, and how many workers have died over the first of that."""

    bundle: Bundle[Given]
    deaths: int = 0

    def again(self, why: str) -> "_Sent[Given]":
        """Return the same after one more death; the last one is an error."""
        if self.deaths + 1 >= _TRIES:
            raise TaskLost(self.bundle.tasks[0].what, _TRIES, why) from None
        return _Sent(self.bundle, self.deaths + 1)


class _Cluster:
    """What a cluster offers, looked at again every now and then: nodes come and go."""

    def __init__(self, ray: Any, patience_seconds: float) -> None:
        self._ray = ray
        self._patience_seconds = patience_seconds
        self._looked = self._worked = -float("inf")
        self._cores = 0
        self._largest_bytes = 0

    def processors(self) -> int:
        """Return how many there are."""
        self._look()
        return self._cores

    def room(self) -> int:
        """Return how many bundles may be under way."""
        return _AHEAD * max(1, self.processors())

    def check_room(self, bundle: Bundle[Any]) -> None:
        """Refuse what would wait forever for a node that is large enough."""
        if self._cores and _rounded(bundle) > self._largest_bytes:
            raise NoNodeFits(bundle.what, bundle.needed_bytes, self._largest_bytes)

    def answered(self, handles: list[Any]) -> Iterable[Any]:
        """Return who has a value, waiting for a moment only: meanwhile a cluster may have gone."""
        first, others = self._ray.wait(handles, num_returns=1, timeout=_LOOK_SECONDS)
        if not (first and others):
            return list(first)
        more, _ = self._ray.wait(others, num_returns=len(others), timeout=0)
        return [*first, *more]

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return
        offers = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        self._looked, self._cores = now, int(sum(offer.get("CPU", 0) for offer in offers))
        self._largest_bytes = int(
            max((offer.get("memory", 0) for offer in offers if offer.get("CPU")), default=0)
        )
        if self._cores or self._worked == -float("inf"):
            self._worked = now
        if now - self._worked > self._patience_seconds:
            raise NobodyWorks(self._patience_seconds)


def _rounded(bundle: Bundle[Any]) -> int:
    """Return what a bundle asks for, in steps."""
    return -(-bundle.needed_bytes // _GRAIN_BYTES) * _GRAIN_BYTES


def _work_in(folder: str, work: Callable[[Sent], Returned], given: list[Sent]) -> Iterator[Returned]:
    """Do the work where the user stands, so that relative paths mean the same."""
    os.chdir(folder)
    for one in given:
        yield work(one)


def _ray() -> Any:
    # what Ray has to say about dead workers goes to stdout, where our results are; we say it in our words
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    try:
        import ray
    except ImportError:
        raise NoRay from None
    return ray
