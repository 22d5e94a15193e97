"""Batches of so many elements."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from anybatch.errors import Damage
from anybatch.stream.stage import Stage


@dataclass(frozen=True, slots=True)
class Batch(Stage):
    """`size` elements of the parent at a time, as columns."""

    parent: Stage
    size: int
    drop_remainder: bool

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise ValueError(f"a batch has {self.size!r} elements; it needs a whole number from 1 on")
        if isinstance(self.parent, Batch):
            raise ValueError(f"the stream is batched by {self.parent.size} already; batch once")

    def elements(self) -> Iterator[Any]:
        return self.parent.batches(self.size, drop_remainder=self.drop_remainder)

    def batches(self, size: int, *, drop_remainder: bool) -> Iterator[Any]:
        raise ValueError(f"the stream is batched by {self.size} already; batch once")

    def length(self) -> int:
        whole, rest = divmod(self.parent.length(), self.size)
        return whole + (rest > 0 and not self.drop_remainder)

    def damages(self) -> list[Damage]:
        return self.parent.damages()
