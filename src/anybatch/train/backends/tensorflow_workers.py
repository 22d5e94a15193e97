"""Several workers on TensorFlow's own collectives: joining them, and what they say to each other."""

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.distribute import collective_all_reduce_strategy
from tensorflow.python.eager import context

from anybatch.train.workers import (
    JOIN_SECONDS,
    JOIN_VARIABLE,
    PEER_SECONDS,
    PEER_VARIABLE,
    CannotListen,
    Membership,
    NobodyCame,
    PeerLost,
    SeveralDevices,
    TooLate,
    can_be_told_to_stop,
    membership,
    seconds_of,
    told_to_stop,
)

Collective = Callable[[Any, list[Any]], Any]
"""Takes a replica's context and tensors of one type."""

_PIECE_BYTES = 16 << 20
_LOOK_SECONDS = 2.0
_WATCH_SECONDS = 0.2
_NATIVE = frozenset({tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64})
"""What collectives sum; all else goes as 64-bit integers."""

_OF_OTHERS = (
    tf.errors.UnavailableError,
    tf.errors.DeadlineExceededError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.FailedPreconditionError,
    tf.errors.InternalError,
    tf.errors.UnknownError,
)

_NO_SERVER = "Could not start gRPC server"
_ENDED = "the launcher has ended this attempt"

_joined: list["CollectiveWorkers"] = []
"""At most one: a process can join once."""


def join() -> "CollectiveWorkers | None":
    """Become one of the workers that `TF_CONFIG` names; None if it names no others.

    Has to come before TensorFlow does anything else, and returns when all are there.
    """
    place = membership()
    if place is None or _joined:
        return _joined[0] if _joined else None
    if context.context()._initialized:  # noqa: SLF001 - there is no public way to ask
        raise TooLate
    workers = CollectiveWorkers(_strategy(place), place)
    stop_when_told()
    workers.wait_for_all(seconds_of(JOIN_VARIABLE, JOIN_SECONDS))
    _joined.append(workers)
    return workers


def stop_when_told() -> None:
    """Let collectives fail once the launcher says that a worker is gone: not every one notices by itself."""

    def watch() -> None:
        while not told_to_stop():
            time.sleep(_WATCH_SECONDS)
        context.context().abort_collective_ops(tf.errors.UNAVAILABLE, _ENDED)

    if can_be_told_to_stop():
        threading.Thread(target=watch, name="anybatch-workers", daemon=True).start()


def _strategy(place: Membership) -> Any:
    """Return TensorFlow's strategy for several workers, without what it would do beside collectives.

    Its coordination service waits an hour for whoever does not come, catches SIGTERM, and ends the process
    when another one ends; its health check waits for ever. What is needed of both is done here.
    """
    context.context().configure_coordination_service(service_type="")
    collective_all_reduce_strategy.CollectiveAllReduceExtended._enable_check_health = False  # noqa: SLF001
    silence = seconds_of(PEER_VARIABLE, PEER_SECONDS)
    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=silence)
    try:
        return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    except tf.errors.UnknownError as error:
        if _NO_SERVER not in str(error):
            raise
        raise CannotListen(place.rank, place.addresses[place.rank]) from None


def _absent(place: Membership) -> tuple[str, ...]:
    """Return the workers that nobody answers for."""
    others = [(rank, address) for rank, address in enumerate(place.addresses) if rank != place.rank]
    return tuple(f"worker {rank} at {address}" for rank, address in others if not _answers(address))


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with suppress(OSError, ValueError), socket.create_connection((host, int(port)), _LOOK_SECONDS):
        return True
    return False


class CollectiveWorkers:
    """The workers of one strategy, of which nothing is used but its collectives."""

    def __init__(self, strategy: Any, place: Membership) -> None:
        if strategy.num_replicas_in_sync != place.size:
            raise SeveralDevices(strategy.num_replicas_in_sync, place.size)
        self.rank = place.rank
        self.size = place.size
        self._place = place
        self._strategy = strategy
        self._traces: dict[Any, Any] = {}

    def wait_for_all(self, seconds: float) -> None:
        """Return when every worker is there; an error names those that are not in time."""
        options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=seconds)
        count = self._traced(
            lambda here, tensors: here.all_reduce(_SUM, tensors, options), [tf.TensorSpec([1])]
        )
        try:
            count(tf.ones([1]))
        except _OF_OTHERS:
            if told_to_stop():
                raise PeerLost(self.rank, _ENDED) from None
            raise NobodyCame(_absent(self._place), self.size, seconds) from None

    def all_sum(self, tensors: Sequence[Any]) -> list[Any]:
        """Return the sums over all workers, the same bits for each of them."""
        given = [tf.convert_to_tensor(tensor) for tensor in tensors]
        return self._said(_summed, given, [one.shape for one in given])

    def all_rows(self, tensors: Sequence[Any]) -> list[Any]:
        """Return the rows of all workers one behind the other, in the order of the workers."""
        given = [tf.convert_to_tensor(tensor) for tensor in tensors]
        return self._said(_end_to_end, given, [[None, *one.shape[1:]] for one in given])

    def _said(self, collective: Collective, tensors: list[Any], shapes: list[Any]) -> list[Any]:
        """Run a collective that is traced once for tensors of these types and shapes."""
        if not tensors:
            return []
        specs = [tf.TensorSpec(shape, one.dtype) for one, shape in zip(tensors, shapes, strict=True)]
        key = (collective, *specs)
        if key not in self._traces:
            self._traces[key] = self._traced(collective, specs)
        try:
            return list(self._traces[key](*tensors))
        except _OF_OTHERS as error:
            raise PeerLost(self.rank, _in_short(error)) from None

    def _traced(self, collective: Collective, specs: list[Any]) -> Any:
        def run(*tensors: Any) -> Any:
            here = tf.distribute.get_replica_context()
            return _by_kind(lambda some: collective(here, some), tensors)

        traced = tf.function(lambda *tensors: self._strategy.run(run, args=tensors), autograph=False)
        return traced.get_concrete_function(*specs)

    def of_first(self, content: Any) -> Iterator[bytes]:
        """Yield the bytes that worker 0 has given, some at a time."""
        own = memoryview(content).cast("B") if self.rank == 0 else memoryview(b"")
        length = int(self.all_sum([tf.constant(len(own), tf.int64)])[0])
        for start in range(0, length, _PIECE_BYTES):
            yield self._piece(own, start, min(_PIECE_BYTES, length - start))

    def _piece(self, own: memoryview, start: int, n_bytes: int) -> bytes:
        words = np.zeros(-(-n_bytes // 8), np.int64)
        if self.rank == 0:
            words.view(np.uint8)[:n_bytes] = own[start : start + n_bytes]
        return np.asarray(self._flat_sum(tf.constant(words))).tobytes()[:n_bytes]

    def give_first_values(self, variables: Sequence[Any]) -> None:
        """Let every variable have worker 0's value, one after the other."""
        for variable in variables:
            value = tf.convert_to_tensor(variable.value)
            own = value if self.rank == 0 else tf.zeros_like(value)
            variable.assign(tf.reshape(self._flat_sum(tf.reshape(own, [-1])), value.shape))

    def _flat_sum(self, numbers: Any) -> Any:
        """Return a sum of any length, without a trace for each."""
        return self._said(_summed, [numbers], [[None]])[0]


_SUM = tf.distribute.ReduceOp.SUM


def _summed(here: Any, tensors: list[Any]) -> Any:
    return here.all_reduce(_SUM, tensors)


def _end_to_end(here: Any, tensors: list[Any]) -> Any:
    return here.all_gather(tensors, 0)


def _by_kind(collective: Callable[[list[Any]], Any], tensors: Sequence[Any]) -> list[Any]:
    """Return what a collective makes of tensors, all of one type at a time: it lays them end to end."""
    sent = [tf.identity(one) if one.dtype in _NATIVE else tf.cast(one, tf.int64) for one in tensors]
    found: dict[int, Any] = {}
    for dtype in sorted({one.dtype.name for one in sent}):
        places = [at for at, one in enumerate(sent) if one.dtype.name == dtype]
        found |= zip(places, collective([sent[at] for at in places]), strict=True)
    return [tf.cast(found[at], one.dtype) for at, one in enumerate(tensors)]


_NOISE = re.compile(
    r"\{\{.*?\}\}|\[\[.*?\]\]|\[Op:.*?\]|The error could be from a previous.*|Additional GRPC.*", re.DOTALL
)


def _in_short(error: Exception) -> str:
    """Return what an error says, without TensorFlow's words about its own nodes."""
    text = " ".join(_NOISE.sub("", str(getattr(error, "message", error))).split())
    return f"{type(error).__name__}: {text[:200]}"
