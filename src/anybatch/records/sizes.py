"""How large the records are, from the indexes alone."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anybatch._native import Index

_AT_A_TIME = 1 << 16
_OVERHEAD_BYTES = 16
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


def sizes_of(indexes: Iterable[Index]) -> Sizes:
    """Return the sizes of all records that are not known to be damaged."""
    return joined_sizes(_measured(block) for index in indexes for block in _blocks(index) if block.size)


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


def _measured(sizes: NDArray[np.int64]) -> Sizes:
    # frexp gives the number of bits: exact, as no record comes near 2**53 bytes
    powers = np.frexp(sizes.astype(np.float64))[1]
    counts = np.bincount(powers, minlength=_POWERS).tolist()
    return Sizes(sizes.size, int(sizes.sum()), int(sizes.min()), int(sizes.max()), tuple(counts))


def _blocks(index: Index) -> Iterator[NDArray[np.int64]]:
    damaged = np.array([offset for offset, *_ in index.damaged], dtype=np.int64)
    for start in range(0, index.records, _AT_A_TIME):
        # NumPy's stubs know no buffers but those of Python itself
        pairs: Any = index.extents(start, start + _AT_A_TIME)
        extents = np.frombuffer(pairs, np.int64).reshape(-1, 2)
        if damaged.size:
            extents = extents[~np.isin(extents[:, 0], damaged)]
        yield extents[:, 1] - extents[:, 0] - _OVERHEAD_BYTES
