"""The stream that users hold: an immutable description with the words of tf.data."""

from collections.abc import Iterator
from typing import Any

from anybatch.errors import Damage
from anybatch.stream.batch import Batch
from anybatch.stream.stage import Stage


class Stream:
    """Records as a description of where they come from and what becomes of them.

    Nothing is read until it is iterated, and every operation gives a new stream.
    """

    __slots__ = ("_stage",)

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def __iter__(self) -> Iterator[Any]:
        return self._stage.elements()

    def __len__(self) -> int:
        return self._stage.length()

    def __repr__(self) -> str:
        return f"Stream({self._stage!r})"

    @property
    def corrupt(self) -> list[Damage]:
        """The ledger: `(file, offset, length, reason)` for every damaged stretch met so far."""
        return self._stage.damages()

    def batch(self, n: int, *, drop_remainder: bool = False) -> "Stream":
        """Return a stream of batches of `n` elements; the last one may be shorter unless dropped."""
        return Stream(Batch(self._stage, n, drop_remainder))
