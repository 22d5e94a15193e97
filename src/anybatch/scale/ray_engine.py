"""Tasks on a Ray cluster: Ray places and watches them, and starts them again where a worker or node dies."""

import logging
import os
import socket
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from anybatch.scale.bundles import Bundle, bundled
from anybatch.scale.engine import Given, Made, Task, as_finished
from anybatch.scale.refusals import NobodyWorks, NoCluster, NoNodeFits, NoRay, TaskLost

Sent = TypeVar("Sent")
Returned = TypeVar("Returned")

# beside the first one; an error of the work itself is final, only the death of its worker is not
_RETRIES = 3
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
        carried, here = self._carried(work), str(Path.cwd())

        def start(bundle: Bundle[Given]) -> Any:
            cluster.check_room(bundle)
            options = self._remote.options(
                num_cpus=1,
                memory=_rounded(bundle),
                max_retries=_RETRIES,
                name=f"anybatch {bundle.what}",
                # otherwise Ray fills one node first, by what it last heard of the others: of 24 short jobs on
                # two nodes 8 ran on one of them alone, and of 18 so none
                scheduling_strategy="SPREAD",
            )
            return options.remote(here, carried, [task.given for task in bundle.tasks])

        under_way: dict[Any, Bundle[Given]] = {}
        try:
            for bundle, handle in as_finished(
                bundled(list(tasks), cluster.processors()),
                under_way,
                room=cluster.room,
                start=start,
                finished=cluster.finished,
            ):
                yield from zip(bundle.tasks, self._result(bundle, handle), strict=True)
        finally:
            for handle in under_way:
                self._ray.cancel(handle)

    def _carried(self, work: Callable[[Given], Made]) -> Any:
        """Return the work as tasks carry it: itself if it is small, else a reference to it, sent once."""
        small = len(self._ray.cloudpickle.dumps(work)) <= _CARRIED_BYTES
        return work if small else self._ray.put(work)

    def _result(self, bundle: Bundle[Any], handle: Any) -> Any:
        failures = self._ray.exceptions
        try:
            return self._ray.get(handle)
        except failures.RayTaskError as error:
            # the error of the work itself, as it would be here
            raise error.cause from None
        except failures.RayError as error:
            raise TaskLost(bundle.what, _RETRIES + 1, str(error).splitlines()[0]) from None


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

    def finished(self, handles: list[Any]) -> Iterable[Any]:
        """Return what has ended, waiting for a moment only: meanwhile a cluster may have gone."""
        done, _ = self._ray.wait(handles, num_returns=1, timeout=_LOOK_SECONDS)
        return list(done)

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


def _work_in(folder: str, work: Callable[[Sent], Returned], given: list[Sent]) -> list[Returned]:
    """Do the work where the user stands, so that relative paths mean the same."""
    os.chdir(folder)
    return [work(one) for one in given]


def _ray() -> Any:
    # what Ray has to say about dead workers goes to stdout, where our results are; we say it in our words
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    try:
        import ray
    except ImportError:
        raise NoRay from None
    return ray
