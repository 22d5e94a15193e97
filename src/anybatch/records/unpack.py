"""Compressed shards into plain bytes, as far as they can be decompressed."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from anybatch.records.index import Progress
from anybatch.records.shards import Shard
from anybatch.records.threads import give_way
from anybatch.records.whole_files import new_file

# what zlib calls the three ways to wrap deflate
WINDOW_BITS = {"GZIP": 31, "ZLIB": 15}

_PACKED_BYTES = 256 << 10
# a shard that inflates a thousandfold must not be held in memory at once
_PLAIN_BYTES = 4 << 20

Inflater: TypeAlias = Any
"""What `zlib.decompressobj` gives; its class has no public name."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """How much came out, and the byte of the compressed file where it broke off, if it did."""

    stream_bytes: int
    broken_at: int | None


class _Broken(Exception):
    """The compressed stream cannot be followed beyond this byte of the file."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def unpack(shard: Shard, into: Path, *, progress: Progress | None = None) -> Unpacked:
    """Write what a compressed shard holds to a new plain file, up to where it is damaged."""
    written = 0
    with Path(shard.path).open("rb") as packed, new_file(into) as out:
        try:
            for piece in _inflated(packed, WINDOW_BITS[shard.compression], progress):
                written += out.write(piece)
        except _Broken as broken:
            return Unpacked(written, broken.at)
    return Unpacked(written, None)


def _inflated(packed: BinaryIO, window_bits: int, progress: Progress | None) -> Iterator[bytes]:
    """Yield what is in one member after the other."""
    inflater, done = zlib.decompressobj(window_bits), 0
    while chunk := packed.read(_PACKED_BYTES):
        give_way()
        rest = chunk
        while rest:
            if inflater.eof:
                inflater = zlib.decompressobj(window_bits)
            yield from _all_of(inflater, rest, done + len(chunk) - len(rest))
            rest = inflater.unused_data
        done += len(chunk)
        if progress:
            progress(len(chunk))
    if not inflater.eof:
        raise _Broken(done)


def _all_of(inflater: Inflater, rest: bytes, at: int) -> Iterator[bytes]:
    """Yield what some bytes hold, in pieces of bounded size."""
    while True:
        before = inflater.copy()
        try:
            piece = inflater.decompress(rest, _PLAIN_BYTES)
        except zlib.error:
            yield from _up_to_damage(before, rest, at)
            return
        yield piece
        at += len(rest) - len(inflater.unconsumed_tail)
        rest = inflater.unconsumed_tail
        if not rest and len(piece) < _PLAIN_BYTES:
            return


def _up_to_damage(inflater: Inflater, rest: bytes, at: int) -> Iterator[bytes]:
    """Yield what comes before the damage: a failing call gives nothing of what it had made by then."""
    for number in range(len(rest)):
        try:
            yield inflater.decompress(rest[number : number + 1])
        except zlib.error:
            raise _Broken(at + number) from None
    raise _Broken(at + len(rest))
