"""What a stream is made of: frozen values that know their parent, their length and how to run."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from anybatch.errors import Damage
from anybatch.stream.chunk import Chunk, State
from anybatch.stream.run import Run

SOURCE_WEIGHT = 4
HOLDING_WEIGHT = 3


class Endless(TypeError):
    """A length that is asked of a stream which never ends."""


class Stage(ABC):
    """A source of elements, or one operation on those of its parent."""

    __slots__ = ()

    @abstractmethod
    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        """Yield chunks from the beginning, or from behind the row that `state` was taken at."""

    @abstractmethod
    def length(self) -> int:
        """Return how many elements there are; a TypeError where that cannot be known."""

    @property
    @abstractmethod
    def batched(self) -> bool:
        """Whether an element is a whole batch."""

    @property
    @abstractmethod
    def weight(self) -> int:
        """How much of the memory this and everything below it should get, against others."""

    @property
    def reserved_bytes(self) -> int:
        """What this and everything below it needs, however much there is: weights share out the rest."""
        return 0

    @abstractmethod
    def damages(self) -> list[Damage]:
        """Return every damaged stretch of the sources met so far."""

    @abstractmethod
    def described(self) -> str:
        """Return the operation as one would write it."""


@dataclass(frozen=True, slots=True)
class Operation(Stage):
    """A stage with one parent; what it does not change is the parent's."""

    parent: Stage

    def length(self) -> int:
        return self.parent.length()

    @property
    def batched(self) -> bool:
        return self.parent.batched

    @property
    def weight(self) -> int:
        return self.parent.weight

    @property
    def reserved_bytes(self) -> int:
        return self.parent.reserved_bytes

    def damages(self) -> list[Damage]:
        return self.parent.damages()
