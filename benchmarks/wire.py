"""Serialise columns as `tf.train.Example` messages, byte for byte as TensorFlow would."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.digest import Columns, Lists, offsets_of

# the field numbers of tf.train.Feature
BYTES_LIST, FLOAT_LIST, INT64_LIST = 1, 2, 3
Payloads = tuple[int, bytes, list[int]]  # kind of list, all rows' payloads, where each starts


def examples(columns: Columns) -> Iterator[bytes]:
    """Yield one message per row, keys sorted as deterministic serialisation does."""
    payloads = {name: _payloads(column) for name, column in sorted(columns.items())}
    rows = len(next(iter(payloads.values()))[2]) - 1
    return (_example(payloads, row) for row in range(rows))


def varint(number: int) -> bytes:
    """Return a non-negative number in groups of seven bits, lowest first."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def packed_varints(numbers: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the varints of all numbers, and how many bytes each takes: ten if it is below zero."""
    values = numbers.view(np.uint64)
    lengths = np.ones(len(values), np.int64)
    for bits in range(7, 64, 7):
        lengths += values >= np.uint64(1 << bits)
    starts = offsets_of(lengths)
    packed = np.zeros(int(starts[-1]), np.uint8)
    for group in range(int(lengths.max(initial=0))):
        has = lengths > group
        more = np.where(lengths[has] > group + 1, 0x80, 0).astype(np.uint8)
        sevens = (values[has] >> np.uint64(7 * group)).astype(np.uint8) & 0x7F
        packed[starts[:-1][has] + group] = sevens | more
    return packed, lengths


def _example(payloads: Mapping[str, Payloads], row: int) -> bytes:
    parts: list[bytes] = []
    for name, (kind, flat, starts) in payloads.items():
        payload = flat[starts[row] : starts[row + 1]]
        parts += [_entry_start(name, kind, len(payload)), payload]
    return _field_start(1, sum(map(len, parts))) + b"".join(parts)


@lru_cache(maxsize=1 << 16)
def _entry_start(name: str, kind: int, payload_bytes: int) -> bytes:
    """Return what stands before the payload in an entry of the map Features.feature."""
    # a packed list without numbers leaves its field out; an empty byte string is still a value
    omitted = kind != BYTES_LIST and payload_bytes == 0
    start = b"" if omitted else _field_start(1, payload_bytes)
    start = _field_start(kind, len(start) + payload_bytes) + start
    start = _field_start(2, len(start) + payload_bytes) + start
    key = name.encode()
    start = _field_start(1, len(key)) + key + start
    return _field_start(1, len(start) + payload_bytes) + start


@lru_cache(maxsize=1 << 16)
def _field_start(number: int, length: int) -> bytes:
    return varint(number << 3 | 2) + varint(length)


def _payloads(column: NDArray[np.generic] | Lists) -> Payloads:
    lists = column if isinstance(column, Lists) else _rows_as_lists(column)
    if lists.values.dtype == np.int64:
        return _int64_payloads(lists)
    kind = FLOAT_LIST if lists.values.dtype == np.float32 else BYTES_LIST
    starts = lists.offsets * lists.values.dtype.itemsize
    return kind, lists.values.tobytes(), starts.tolist()


def _int64_payloads(lists: Lists) -> Payloads:
    packed, lengths = packed_varints(lists.values.astype(np.int64))
    starts = offsets_of(lengths)[lists.offsets]
    return INT64_LIST, packed.tobytes(), starts.tolist()


def _rows_as_lists(rows: NDArray[np.generic]) -> Lists:
    width = rows[0].size
    return Lists(rows.reshape(-1), np.arange(len(rows) + 1, dtype=np.int64) * width)
