"""How large the records are, from indexes alone or from a survey."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from anybatch._native import Index, Survey

_POWERS = 64


@dataclass(frozen=True, slots=True)
class Bin:
    """How many records have from `at_least` to `at_most` bytes of data."""

    at_least: int
    at_most: int
    records: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """The data bytes of some records, framing not counted."""

    records: int = 0
    total_bytes: int = 0
    smallest_bytes: int = 0
    largest_bytes: int = 0
    by_power: tuple[int, ...] = (0,) * _POWERS
    """How many are empty, have 1 byte, 2 to 3 bytes, 4 to 7 …"""

    @property
    def mean_bytes(self) -> float:
        """The mean, or 0 without records."""
        return self.total_bytes / self.records if self.records else 0.0

    @property
    def bins(self) -> list[Bin]:
        """The counts by power of two, from the first to the last that is not 0.

        >>> Sizes(by_power=(0, 0, 5, 0, 1)).bins[0]
        Bin(at_least=2, at_most=3, records=5)
        """
        filled = [power for power, records in enumerate(self.by_power) if records]
        powers = range(filled[0], filled[-1] + 1) if filled else ()
        return [Bin(1 << power >> 1, (1 << power) - 1, self.by_power[power]) for power in powers]


def sizes_of(sources: Iterable[Index | Survey]) -> Sizes:
    """Return the sizes of all records not known to be damaged, or of those that surveys have looked at."""
    return joined_sizes(map(_measured, sources))


def joined_sizes(several: Iterable[Sizes]) -> Sizes:
    """Return the sizes of the records of all of them together."""
    return reduce(_joined, several, Sizes())


def _joined(a: Sizes, b: Sizes) -> Sizes:
    if not a.records or not b.records:
        return a if a.records else b
    return Sizes(
        a.records + b.records,
        a.total_bytes + b.total_bytes,
        min(a.smallest_bytes, b.smallest_bytes),
        max(a.largest_bytes, b.largest_bytes),
        tuple(x + y for x, y in zip(a.by_power, b.by_power, strict=True)),
    )


def _measured(source: Index | Survey) -> Sizes:
    records, total, smallest, largest, by_power = source.sizes()
    return Sizes(records, total, smallest, largest, tuple(by_power))
