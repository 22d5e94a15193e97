"""Which data a stream reads, so that a state or a checkpoint is not continued on other data."""

import hashlib
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from anybatch.errors import AnybatchError
from anybatch.stream.lifted import every_stage
from anybatch.stream.stage import Stage

_MOST_TOLD = 3
_MOST_LETTERS = 120


class OtherData(AnybatchError, ValueError):
    """A state that was taken from other data: going on would repeat records and leave others out."""

    def __init__(self, then: str, now: str) -> None:
        super().__init__(then, now)
        self.then = then
        self.now = now

    def __str__(self) -> str:
        what = f"{self.then} then, {self.now} now"
        if self.then == self.now:
            what = f"{self.then} then and now, but the content is another"
        return (
            f"the state was taken from other data: {what}; records would come twice and others never. "
            "Go on with the data it was taken from, or begin anew"
        )


@dataclass(frozen=True, slots=True)
class Contents:
    """What data is, for people, and a hash by which it is compared."""

    told: str
    digest: str


@runtime_checkable
class Telling(Protocol):
    """A source that says which data it reads."""

    def contents(self) -> Contents:
        """Return what is read, told cheaply: without an index, and whatever the files are called."""


def contents_of(stage: Stage) -> Contents:
    """Return what all sources of a stream read, in about a hundred bytes."""
    found = [one.contents() for one in every_stage(stage) if isinstance(one, Telling)]
    more = [f"{len(found) - _MOST_TOLD} more"] * (len(found) > _MOST_TOLD)
    told = " and ".join([*(one.told for one in found[:_MOST_TOLD]), *more])
    digest = hashlib.sha256("\n".join(one.digest for one in found).encode()).hexdigest()[:16]
    return Contents(told if len(told) <= _MOST_LETTERS else f"{told[: _MOST_LETTERS - 1]}…", digest)
