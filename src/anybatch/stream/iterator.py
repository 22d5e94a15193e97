"""Iteration that can be stopped anywhere and taken up again."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from anybatch.stream.chunk import Chunk, State
from anybatch.stream.order import CannotMerge, merged
from anybatch.stream.run import Run
from anybatch.stream.stage import Operation, Stage
from anybatch.stream.structure import record

_VERSION = 1


class StreamIterator(Iterator[Any]):
    """The elements of a stream, one by one, and where it stands."""

    def __init__(self, stage: Stage, run: Run) -> None:
        self._stage = stage
        self._run = run
        self._state: State = None
        self._chunks: Iterator[Chunk] | None = None
        self._chunk: Chunk | None = None
        self._row = 0

    def __next__(self) -> Any:
        chunk = self._current()
        at, self._row = self._row, self._row + 1
        self._state = (chunk, at)
        if chunk.whole:
            self._chunk = None
            return chunk.value
        return record(chunk.value, at)

    def _current(self) -> Chunk:
        if self._chunks is None:
            self._chunks = self._stage.open(self._run, self._resolved())
        while self._chunk is None or self._row >= self._chunk.rows:
            self._chunk, self._row = next(self._chunks), 0
        return self._chunk

    def _resolved(self) -> State:
        if isinstance(self._state, tuple):
            chunk, at = self._state
            self._state = chunk.stamp(at)
        return self._state

    def get_state(self) -> dict[str, Any]:
        """Return where this stands, JSON-able and small: `set_state` of an equal stream goes on behind it."""
        return {
            "version": _VERSION,
            "stream": fingerprint(self._stage),
            "epoch": self._run.epoch,
            "at": self._resolved(),
        }

    def set_state(self, state: Mapping[str, Any] | list[Mapping[str, Any]]) -> None:
        """Go on where a state was taken. A list: the states of all workers, for any number of new ones."""
        several = state if isinstance(state, list) else [state]
        for one in several:
            self._check(one, elastic=isinstance(state, list))
        self.close()
        self._run = self._run.at_epoch(several[0]["epoch"])
        self._state = (
            merged([_source_state(one["at"]) for one in several]) if isinstance(state, list) else state["at"]
        )

    def _check(self, state: Mapping[str, Any], *, elastic: bool) -> None:
        if state.get("version") != _VERSION:
            raise ValueError("this is no state of a stream; it comes out of get_state()")
        if not elastic and state["stream"] != fingerprint(self._stage):
            raise ValueError("the state was taken from another stream: other operations, or in another order")

    def close(self) -> None:
        """End what works ahead, and forget the place."""
        close = getattr(self._chunks, "close", None)
        if close is not None:
            close()
        self._chunks, self._chunk, self._row, self._state = None, None, 0, None


def _source_state(state: State) -> State:
    if state is not None and "position" not in state:
        raise CannotMerge(
            "only streams that are order, map, filter and batch can change their number of workers"
        )
    return state


def fingerprint(stage: Stage) -> str:
    """Return a short text that differs where the operations do. Functions count by their name."""
    texts = []
    at: Any = stage
    while isinstance(at, Operation):
        texts.append(at.described())
        at = at.parent
    texts.append(type(at).__name__)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
