"""Shards made by hand, so that their damage is known to the byte."""

import gzip
import struct
import zlib
from itertools import accumulate
from pathlib import Path

from anybatch._native import masked_crc32c
from anybatch.records import RecordSet, find_shards

PACK = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}
OVERHEAD = 16


def some_records(count, *, size=20):
    """Records of different lengths and contents."""
    return [b"%06d" % number + bytes([number % 251]) * (number * 7 % size) for number in range(count)]


def framed(record):
    header = struct.pack("<Q", len(record))
    return (
        header + struct.pack("<I", masked_crc32c(header)) + record + struct.pack("<I", masked_crc32c(record))
    )


def stream_of(records):
    return b"".join(map(framed, records))


def starts_of(records):
    """Where each record starts, and where the last one ends."""
    return [0, *accumulate(len(record) + OVERHEAD for record in records)]


def write_shard(path, records, compression=""):
    Path(path).write_bytes(PACK[compression](stream_of(records)))
    return str(path)


def flipped(content, at):
    return content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :]


def records_in(*paths):
    """All records, damaged ones left out, as a reader sees them."""
    if not any(Path(path).stat().st_size for path in paths):
        return []
    records = RecordSet(find_shards(list(paths)), None, "skip")
    return [record for column in records.in_file_order(100) for record in column]


def left_behind(folder):
    """Everything in a folder and below, names only."""
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*"))
