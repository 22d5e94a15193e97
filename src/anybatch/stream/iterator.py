"""Iteration that can be stopped anywhere and taken up again."""

import hashlib
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from anybatch.errors import AnybatchError, DoesNotFit
from anybatch.stream.batch import Batch
from anybatch.stream.chunk import Chunk, Stamp, State, close
from anybatch.stream.contents import Contents, OtherData, contents_of
from anybatch.stream.epoch import Epoch
from anybatch.stream.filter import Filter
from anybatch.stream.handed import Rows, copied_bytes, handed_over
from anybatch.stream.limits import LimitMemory, Prefetch, bounded, limit_of
from anybatch.stream.order import CannotMerge, Kept, OneToOne, addressed, check_mergeable, merged
from anybatch.stream.places import NoState, check_place, is_count
from anybatch.stream.run import Run
from anybatch.stream.several import Several
from anybatch.stream.slices import Shard
from anybatch.stream.stage import Operation, Stage
from anybatch.stream.structure import Structure, bytes_of

_log = logging.getLogger("anybatch")

_VERSION = 2
_NAMES_OF_DATA = 2
"""The first version whose states say which data they belong to; older ones go on as they always did."""


class ForeignIterator(AnybatchError, RuntimeError):
    """An iterator that a forked process has inherited: the threads that work for it stayed behind."""

    def __str__(self) -> str:
        return "this iterator belongs to another process; iterate the stream anew"


class Resumable:
    """A pass over a stream, and where it stands."""

    def __init__(self, stage: Stage, run: Run) -> None:
        self._stage = stage
        self._run = bounded(run, stage)
        self._process = os.getpid()
        self._state: State = None
        # where the last element left off: made into a state when somebody asks
        self._passed: tuple[Stamp, int] | None = None
        self._chunks: Iterator[Chunk] | None = None
        self._contents: Contents | None = None

    def _open(self, state: State) -> Iterator[Chunk]:
        return self._stage.open(self._run, state)

    def __reduce__(self) -> Any:
        raise TypeError("an iterator is not pickled; pickle the stream, and get_state() for the place in it")

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise ForeignIterator

    def _next_chunk(self) -> Chunk:
        if self._chunks is None:
            self._chunks = self._open(self._place())
        try:
            return next(self._chunks)
        except StopIteration:
            raise
        except DoesNotFit as refusal:
            self._stop()
            raise refusal.under(limit_of(self._stage)) from None
        except BaseException:
            # an ended generator would look like the end of the stream to whoever asks again
            self._stop()
            raise

    def _place(self) -> State:
        if self._passed is not None:
            stamp, at = self._passed
            self._state, self._passed = stamp(at), None
        return self._state

    def get_state(self) -> dict[str, Any]:
        """Return where this stands, JSON-able and small: `set_state` of an equal stream goes on behind it."""
        return {
            "version": _VERSION,
            "stream": fingerprint(self._stage),
            "data": [self._data.told, self._data.digest],
            "shard": _shard(self._stage),
            "epoch": self._run.epoch,
            "at": self._place(),
        }

    def set_state(self, state: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Go on where a state was taken. A list: the states of all workers, for any number of new ones."""
        if isinstance(state, list | tuple):
            epoch, at = self._merged(state)
        else:
            epoch, at = self._own(state)
        self._stop()
        self._run = self._run.at_epoch(epoch)
        self._state, self._passed = at, None

    @property
    def _data(self) -> Contents:
        # once per pass: files that change under it are found out by reading them
        if self._contents is None:
            self._contents = contents_of(self._stage)
        return self._contents

    def _check(self, state: Any) -> None:
        _check_form(state)
        if state["stream"] != fingerprint(self._stage):
            raise ValueError(
                "the state was taken from another stream: other operations, other arguments (a seed, a batch "
                "size), or another order; make the stream as it was"
            )
        check_place(self._stage, state["at"])
        self._check_data(state)

    def _check_data(self, state: Mapping[str, Any]) -> None:
        if state["version"] < _NAMES_OF_DATA:
            # refusing would end runs that are right, and most are
            _log.warning("a state of an older version does not say which data it belongs to; it is believed")
            return
        then, digest = state["data"]
        if digest != self._data.digest:
            raise OtherData(then, self._data.told)

    def _own(self, state: Any) -> tuple[int, State]:
        self._check(state)
        if state["shard"] != _shard(self._stage):
            raise ValueError(
                "the state was taken from another worker; a list of the states of all workers is what any "
                "number of them can go on from"
            )
        return state["epoch"], state["at"]

    def _merged(self, states: Sequence[Any]) -> tuple[int, State]:
        check_mergeable(_below(self._stage))
        for state in states:
            self._check(state)
        shards = sorted((*(state["shard"] or (1, 0)), at) for at, state in enumerate(states))
        if not states or [shard[:2] for shard in shards] != [(len(states), at) for at in range(len(states))]:
            found = ", ".join(f"{index} of {count}" for count, index, _ in shards) or "none"
            raise CannotMerge(f"the states are of the shards {found}; all of one run are needed")
        if len({state["epoch"] for state in states}) > 1:
            raise CannotMerge("the states are of different epochs; all of one run are needed")
        return states[0]["epoch"], merged([states[at]["at"] for _, _, at in shards])

    def close(self) -> None:
        """End what works ahead, and forget the place."""
        self._stop()
        self._state, self._passed = None, None

    def _stop(self) -> None:
        """End what works ahead; the next element is the one behind the last that was handed over."""
        if self._chunks is not None:
            close(self._chunks)
        self._chunks = None


class StreamIterator(Resumable, Iterator[Any]):
    """The elements of a stream, one by one."""

    def __init__(self, stage: Stage, run: Run) -> None:
        super().__init__(stage, run)
        self._chunk: Chunk | None = None
        self._rows: Rows | None = None
        self._row = 0
        self._turn = threading.Lock()

    def __next__(self) -> Any:
        self._check_process()
        # threads that share an iterator take turns: each element goes to one of them
        with self._turn:
            return self._element()

    def _element(self) -> Any:
        while self._chunk is None or self._row >= self._chunk.rows:
            self._chunk, self._rows, self._row = self._next_chunk(), None, 0
        chunk, at = self._chunk, self._row
        self._row += 1
        self._passed = (chunk.stamp, at)
        if chunk.whole:
            self._chunk = None
            return self._whole(chunk.value)
        if self._rows is None:
            self._rows = Rows(chunk.value)
        return self._rows.at(at)

    def _whole(self, value: Structure) -> Structure:
        """Return a batch as the consumer gets it. What has to be copied is there twice for a moment."""
        copied = copied_bytes(value)
        if not copied:
            return value
        needed = bytes_of(value) + copied
        if needed > self._run.limit_bytes:
            raise DoesNotFit(self._stage.described(), needed, self._run.limit_bytes)
        return handed_over(value)

    def _stop(self) -> None:
        super()._stop()
        self._chunk, self._rows, self._row = None, None, 0


def _check_form(state: Any) -> None:
    if not isinstance(state, Mapping):
        raise NoState(f"it is of type {type(state).__name__}")
    version = state.get("version")
    if not is_count(version) or not 1 <= version <= _VERSION:
        raise NoState(f"its version is {version!r}, and those from 1 to {_VERSION} are understood")
    for name, fits in _FORM.items():
        if name == "data" and version < _NAMES_OF_DATA:
            continue
        if name not in state:
            raise NoState(f"it has no `{name}`")
        if not fits(state[name]):
            raise NoState(f"its `{name}` is {state[name]!r}")


def _is_pair_of(kind: type, value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(one, kind) for one in value)


_FORM: dict[str, Callable[[Any], bool]] = {
    "stream": lambda text: isinstance(text, str),
    "data": lambda data: _is_pair_of(str, data),
    "shard": lambda shard: shard is None or _is_pair_of(int, shard),
    "epoch": is_count,
    # as the stages of the stream want it
    "at": lambda _: True,
}


def _below(stage: Stage) -> Stage:
    """Return the stage below everything that hands states on as they are."""
    while isinstance(stage, OneToOne | Filter | Batch | Epoch | Kept):
        stage = stage.parent
    return stage


def _worker(stage: Stage) -> Shard | None:
    """Return what makes the stream that of one worker among others: a shard as the last change of order."""
    below = _below(stage)
    return below if isinstance(below, Shard) and addressed(below) is not None else None


def _shard(stage: Stage) -> list[int] | None:
    worker = _worker(stage)
    return None if worker is None else [worker.count, worker.index]


def fingerprint(stage: Stage) -> str:
    """Return a short text that differs where the operations do. Functions count by their name.

    Who shares the work, how far ahead it is done and in how much memory are no part of it.
    """
    return hashlib.sha256("\n".join(_operations(stage, _worker(stage))).encode()).hexdigest()[:16]


def _operations(stage: Stage, worker: Shard | None = None) -> Iterator[str]:
    while isinstance(stage, Operation):
        if stage is not worker and not isinstance(stage, LimitMemory | Prefetch):
            yield stage.described()
        stage = stage.parent
    yield type(stage).__name__
    if isinstance(stage, Several):
        yield stage.described()
        for parent in stage.parents:
            yield from _operations(parent)
