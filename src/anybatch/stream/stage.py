"""What a stream is made of: frozen values that know their parent and how to run."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from anybatch.errors import Damage


class Stage(ABC):
    """One operation of a stream, or its source."""

    __slots__ = ()

    @abstractmethod
    def elements(self) -> Iterator[Any]:
        """Yield the elements, from the first one on."""

    @abstractmethod
    def length(self) -> int:
        """Return how many elements there are; a TypeError where that cannot be known."""

    @abstractmethod
    def batches(self, size: int, *, drop_remainder: bool) -> Iterator[Any]:
        """Yield the elements in batches of `size`."""

    def damages(self) -> list[Damage]:
        """Return every damaged stretch of the source met so far."""
        return []
