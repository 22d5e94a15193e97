"""Fingerprints of decoded columns: equal values give equal digests, whoever decoded them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Lists:
    """A column of lists: row `i` is `values[offsets[i]:offsets[i + 1]]`."""

    values: NDArray[np.generic]
    offsets: NDArray[np.int64]

    @classmethod
    def of_bytes(cls, rows: Sequence[bytes]) -> "Lists":
        """Return byte strings as lists of uint8."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        return cls(np.frombuffer(b"".join(rows), np.uint8), offsets_of(lengths))

    @classmethod
    def of_lengths(cls, values: NDArray[np.generic], lengths: NDArray[np.int64]) -> "Lists":
        """Return lists that lie one after the other in `values`."""
        return cls(values, offsets_of(lengths))


Columns = Mapping[str, NDArray[np.generic] | Lists]


@dataclass(slots=True)
class Digest:
    """Sums over rows modulo 2^64: one that knows the order, one that does not."""

    records: int = 0
    ordered: int = 0
    any_order: int = 0
    _mask: int = field(default=(1 << 64) - 1, repr=False)

    def add(self, columns: Columns) -> None:
        """Take in one batch; its rows follow those added before."""
        rows = row_hashes(columns)
        places = np.arange(self.records, self.records + len(rows), dtype=np.uint64)
        self.any_order = (self.any_order + int(rows.sum(dtype=np.uint64))) & self._mask
        self.ordered = (self.ordered + int(mix(rows ^ mix(places)).sum(dtype=np.uint64))) & self._mask
        self.records += len(rows)

    def as_json(self) -> dict[str, str | int]:
        """Return the three findings, the sums as text: JSON numbers lose bits above 2^53."""
        return {
            "records": self.records,
            "ordered": f"{self.ordered:016x}",
            "any_order": f"{self.any_order:016x}",
        }


def offsets_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each list starts, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def row_hashes(columns: Columns) -> U64:
    """Return one hash per row over all columns, whatever their order in the mapping."""
    hashes = [mix(_column_hashes(column) ^ _salt(name)) for name, column in sorted(columns.items())]
    return np.asarray(np.sum(hashes, axis=0, dtype=np.uint64), np.uint64)


def mix(x: U64) -> U64:
    """Scatter the bits of every number (the finaliser of splitmix64)."""
    x = x + GOLDEN
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _salt(name: str) -> np.uint64:
    return np.uint64(crc32(name.encode()))


def _column_hashes(column: NDArray[np.generic] | Lists) -> U64:
    return _list_hashes(column) if isinstance(column, Lists) else _dense_hashes(column)


def _dense_hashes(rows: NDArray[np.generic]) -> U64:
    as_bytes = np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
    padding = -as_bytes.shape[1] % 8
    if padding:
        as_bytes = np.pad(as_bytes, ((0, 0), (0, padding)))
    words = as_bytes.view(np.uint64)
    return np.asarray(words @ _weights(words.shape[1]), np.uint64)


def _list_hashes(lists: Lists) -> U64:
    lengths = np.diff(lists.offsets)
    starts = np.repeat(lists.offsets[:-1], lengths)
    inside = (np.arange(lists.offsets[0], lists.offsets[-1]) - starts).astype(np.uint64)
    values = lists.values[lists.offsets[0] : lists.offsets[-1]].astype(np.uint64)
    # differences of a running sum, because reduceat cannot do empty rows; both wrap at 2^64
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mix(values ^ mix(inside)), dtype=np.uint64)])
    bounds = lists.offsets - lists.offsets[0]
    sums: U64 = running[bounds[1:]] - running[bounds[:-1]] + lengths.astype(np.uint64)
    return sums


def _weights(count: int) -> U64:
    return mix(np.arange(count, dtype=np.uint64)) | np.uint64(1)
