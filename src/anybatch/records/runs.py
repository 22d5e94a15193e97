"""Stretches of bytes from one file to another, slice by slice."""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from anybatch.errors import ShardChanged
from anybatch.records.index import Progress
from anybatch.records.threads import give_way
from anybatch.records.unpack import WINDOW_BITS

_SLICE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Run:
    """Bytes of a file, one behind the other."""

    offset: int
    length: int


def write_runs(
    path: str,
    runs: Iterable[Run],
    out: BinaryIO,
    *,
    compression: str = "",
    progress: Progress | None = None,
) -> None:
    """Write some stretches of a file one behind the other, compressed as one stream if asked for."""
    packer = zlib.compressobj(wbits=WINDOW_BITS[compression]) if compression else None
    pieces = _pieces(path, runs, progress)
    out.writelines(pieces if packer is None else map(packer.compress, pieces))
    if packer is not None:
        out.write(packer.flush())


def _pieces(path: str, runs: Iterable[Run], progress: Progress | None) -> Iterator[bytes]:
    with Path(path).open("rb") as file:
        for run in runs:
            file.seek(run.offset)
            left = run.length
            while left:
                give_way()
                piece = file.read(min(left, _SLICE_BYTES))
                if not piece:
                    raise ShardChanged(path, f"{left:,} bytes behind byte {file.tell():,} are gone")
                left -= len(piece)
                if progress:
                    progress(len(piece))
                yield piece
