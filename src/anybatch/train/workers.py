"""Several processes that train one model: what they can do together, whoever carries it."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from anybatch.errors import AnybatchError
from anybatch.handover import own_papers

CLUSTER_VARIABLE = "TF_CONFIG"
JOIN_VARIABLE = "ANYBATCH_JOIN_SECONDS"
PEER_VARIABLE = "ANYBATCH_PEER_SECONDS"

JOIN_SECONDS = 600.0
"""How long a worker waits until all are there: longer than it may take another one to miss it, and come."""

PEER_SECONDS = 300.0
"""How long it waits for the others in one update: so much longer than the quickest the slowest may take."""

_STOP_FILE = "stop"
_STATE_FILE = "state-folder"
_MEMBERS = ("chief", "worker")


class Workers(Protocol):
    """All of them make the same calls in the same order; a call returns when everybody has made it."""

    @property
    def rank(self) -> int:
        """Which one this is; 0 writes."""
        ...

    @property
    def size(self) -> int: ...

    def all_sum(self, tensors: Sequence[Any]) -> list[Any]:
        """Return the sums over all workers, the same for each of them."""
        ...

    def all_rows(self, tensors: Sequence[Any]) -> list[Any]:
        """Return the rows of all workers one behind the other; some may have none."""
        ...

    def of_first(self, content: Any) -> Iterator[bytes]:
        """Yield the bytes that worker 0 has given, some at a time; all have to be taken."""
        ...

    def give_first_values(self, variables: Sequence[Any]) -> None:
        """Let every variable have the value it has with worker 0."""
        ...


@dataclass(frozen=True, slots=True)
class Membership:
    """What `TF_CONFIG` says: the addresses of all workers, and which of them this process is."""

    addresses: tuple[str, ...]
    rank: int

    @property
    def size(self) -> int:
        return len(self.addresses)


def membership(text: str | None = None) -> Membership | None:
    """Return this process's place among the workers; None if it trains alone.

    >>> config = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}'
    >>> membership(config)
    Membership(addresses=('a:1', 'b:1'), rank=1)
    >>> membership('{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}')
    """
    text = os.environ.get(CLUSTER_VARIABLE) if text is None else text
    if not text:
        return None
    try:
        told = json.loads(text)
        cluster, task = told.get("cluster") or {}, told.get("task") or {}
        addresses = [(kind, n) for kind in _MEMBERS for n in range(len(cluster.get(kind, ())))]
        place = (task.get("type"), int(task.get("index", 0)))
        named = tuple(str(cluster[kind][n]) for kind, n in addresses)
    except (AttributeError, TypeError, ValueError, KeyError):
        raise BadCluster(text) from None
    if len(named) < 2 or place[0] not in _MEMBERS:
        return None
    if place not in addresses:
        # alone it would train a model of its own, and nobody would notice
        raise BadCluster(text)
    return Membership(named, addresses.index(place))


def seconds_of(variable: str, default: float) -> float:
    """Return a time-out that the environment may change."""
    return float(os.environ.get(variable) or default)


def tell_to_stop(folder: Path) -> None:
    """Tell the worker whose papers lie in a folder that another one is gone."""
    (folder / _STOP_FILE).touch()


def forget_to_stop(folder: Path) -> None:
    """Take that back, for the next one."""
    (folder / _STOP_FILE).unlink(missing_ok=True)


def tell_state_folder(folder: Path) -> None:
    """Tell the launcher, if there is one, where this process writes its state: the script may have chosen."""
    papers = own_papers()
    if papers is not None:
        # without it a worker with much to write may be ended early, no more
        with suppress(OSError):
            (papers / _STATE_FILE).write_text(str(folder), encoding="utf-8")


def told_state_folder(papers: Path) -> Path | None:
    """Return where the worker whose papers lie in a folder writes its state; None if it writes none."""
    try:
        return Path((papers / _STATE_FILE).read_text(encoding="utf-8"))
    except OSError:
        return None


def can_be_told_to_stop() -> bool:
    """Return whether somebody has launched this process, and will tell it when another worker is gone."""
    return own_papers() is not None


def told_to_stop() -> bool:
    """Return whether that has happened."""
    papers = own_papers()
    return papers is not None and (papers / _STOP_FILE).exists()


class BadCluster(AnybatchError, ValueError):
    """A `TF_CONFIG` that cannot be read."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return (
            f"{CLUSTER_VARIABLE} is {self.text[:200]!r}; it has to be JSON such as "
            '{"cluster": {"worker": ["host:port", …]}, "task": {"type": "worker", "index": 0}}'
        )


class NobodyCame(AnybatchError, TimeoutError):
    """Some workers were not there in time."""

    def __init__(self, missing: tuple[str, ...], size: int, seconds: float) -> None:
        super().__init__(missing, size, seconds)
        self.missing = missing
        self.size = size
        self.seconds = seconds

    def __str__(self) -> str:
        who = ", ".join(self.missing) or "somebody"
        return (
            f"{self.size} workers were to train together and {who} did not come in {self.seconds:,.0f} s; "
            f"look for why it did not start, or allow more time ({JOIN_VARIABLE}, launch --join-timeout)"
        )


class PeerLost(AnybatchError, ConnectionError):
    """Another worker died, or did not answer in time: no update can be made any more."""

    def __init__(self, rank: int, reason: str) -> None:
        super().__init__(rank, reason)
        self.rank = rank
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"worker {self.rank} lost the others: {self.reason}; `anybatch launch` starts all of them again "
            "from the last state"
        )


class CannotListen(PeerLost):
    """Somebody else has taken this worker's address."""

    def __str__(self) -> str:
        return (
            f"worker {self.rank} cannot listen at {self.reason}, where another process does; "
            "`anybatch launch` starts all of them again, at other addresses unless TF_CONFIG names them"
        )


class OtherThanFirst(AnybatchError, ValueError):
    """A worker that would train something else than worker 0."""

    def __init__(self, rank: int, what: str, first: str, own: str) -> None:
        super().__init__(rank, what, first, own)
        self.rank = rank
        self.what = what
        self.first = first
        self.own = own

    def __str__(self) -> str:
        return (
            f"the {self.what} of worker {self.rank} is another one than that of worker 0: {self.own} "
            f"instead of {self.first}; all workers have to run the same script on the same files"
        )


class AllStop(Exception):
    """Raised on every worker in place of an update: one of them was told to stop training."""


class TooLate(AnybatchError, RuntimeError):
    """The framework was in use before this process became one of several workers."""

    def __str__(self) -> str:
        return (
            f"{CLUSTER_VARIABLE} names several workers, and TensorFlow was in use before they were joined; "
            "start the script with `anybatch launch SCRIPT`, which joins them first"
        )


class SeveralDevices(AnybatchError, RuntimeError):
    """A worker that sees more than one accelerator."""

    def __init__(self, replicas: int, workers: int) -> None:
        super().__init__(replicas, workers)
        self.replicas = replicas
        self.workers = workers

    def __str__(self) -> str:
        return (
            f"{self.workers} workers see {self.replicas} devices, and one worker trains on one: start more "
            "workers, and let CUDA_VISIBLE_DEVICES name one device for each"
        )


class CannotShare(AnybatchError, TypeError):
    """Data that several workers cannot divide among themselves."""

    def __init__(self, what: str, workers: int) -> None:
        super().__init__(what, workers)
        self.what = what
        self.workers = workers

    def __str__(self) -> str:
        return (
            f"{self.workers} workers cannot share data of type {self.what}: nothing says that each sees "
            "the same batches; give arrays, anybatch.read or anybatch.from_arrays"
        )
