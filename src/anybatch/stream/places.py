"""What a state has to look like for a stream to go on from it."""

from collections.abc import Mapping
from typing import Any, TypeGuard

from anybatch.errors import AnybatchError
from anybatch.stream.order import addressed
from anybatch.stream.repeat import Repeat
from anybatch.stream.several import Concat, Mix
from anybatch.stream.slices import Slice
from anybatch.stream.stage import Operation, Stage
from anybatch.stream.windows import WindowShuffle

ENDED = "ended"
"""In place of the state of one of several streams: it has no more elements."""


class NoState(AnybatchError, ValueError):
    """Something that is no state of a stream, or no longer one."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"this is no state of a stream: {self.problem}; pass what get_state() returned, all of it"


def check_place(stage: Stage, at: Any) -> None:
    """Raise an error unless `at` is a place that such a stage can go on from."""
    if at is None:
        return
    if addressed(stage) is not None:
        _check_position(at)
        return
    match stage:
        case Slice():
            _check_parent(stage.parent, at, "passed")
        case Repeat():
            _check_parent(stage.parent, at, "epoch")
        case WindowShuffle():
            _check_parent(stage.parent, at, "window", "given")
        case Concat():
            _check_which(stage, at)
        case Mix():
            _check_parents(stage, at)
        case Operation():
            check_place(stage.parent, at)
        case _:
            _check_position(at)


def is_count(number: Any) -> TypeGuard[int]:
    """Return whether this is a whole number from 0 on."""
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def _check_position(at: Any) -> None:
    _check_numbers(at, "position")
    before = at.get("before") or []
    if not isinstance(before, list) or not all(isinstance(counts, list) and counts for counts in before):
        raise NoState(f"what was done before its place is {before!r}")
    if not all(is_count(count) for counts in before for count in counts):
        raise NoState(f"what was done before its place is {before!r}")


def _check_parent(parent: Stage, at: Any, *names: str) -> None:
    _check_numbers(at, *names, also=("parent",))
    check_place(parent, at["parent"])


def _check_which(stage: Concat, at: Any) -> None:
    _check_numbers(at, "which", also=("parent",))
    if at["which"] >= len(stage.parents):
        raise NoState(f"it is in stream {at['which']} of {len(stage.parents)}")
    check_place(stage.parents[at["which"]], at["parent"])


def _check_parents(stage: Mix, at: Any) -> None:
    _check_numbers(at, "drawn", also=("parents",))
    states = at["parents"]
    if not isinstance(states, list) or len(states) != len(stage.parents):
        raise NoState(f"it has no place for each of {len(stage.parents)} streams")
    for parent, state in zip(stage.parents, states, strict=True):
        if state != ENDED:
            check_place(parent, state)


def _check_numbers(at: Any, *names: str, also: tuple[str, ...] = ()) -> None:
    if not isinstance(at, Mapping):
        raise NoState(f"its place is {at!r}")
    missing = [name for name in (*names, *also) if name not in at]
    if missing:
        raise NoState(f"its place has no `{missing[0]}`")
    for name in names:
        if not is_count(at[name]):
            raise NoState(f"`{name}` of its place is {at[name]!r}")
