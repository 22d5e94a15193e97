"""Bytes that are added to and never changed: in memory at first, then perhaps in files, with checksums."""

import mmap
from array import array
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from anybatch._native import masked_crc32c
from anybatch.stream.layout import Memory

_FIRST_BYTES = 1 << 16


class Growing:
    """Anonymous memory that grows without being copied and goes back to the system at once."""

    def __init__(self) -> None:
        self._map: mmap.mmap | None = None
        self.nbytes = 0

    def append(self, data: Memory) -> None:
        """Add bytes at the end."""
        end = self.nbytes + data.nbytes
        if end > self._capacity:
            self._resize(max(end, 2 * self._capacity, _FIRST_BYTES))
        if self._map is not None and data.nbytes:
            np.frombuffer(self._map, np.uint8, data.nbytes, self.nbytes)[:] = data
        self.nbytes = end

    def all(self) -> Memory:
        """Return everything, sharing the memory."""
        if self._map is None:
            return np.empty(0, np.uint8)
        return np.frombuffer(self._map, np.uint8, self.nbytes)

    def trim(self) -> None:
        """Give back what was set aside for more."""
        if self.nbytes:
            self._resize(self.nbytes)

    @property
    def _capacity(self) -> int:
        return 0 if self._map is None else len(self._map)

    def _resize(self, n_bytes: int) -> None:
        if self._map is not None:
            # the kernel moves pages, not bytes; where there is no mremap they are copied
            with suppress(SystemError, ValueError):
                self._map.resize(n_bytes)
                return
        larger = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if self._map is not None:
            larger[: self.nbytes] = self._map[: self.nbytes]
        self._map = larger


class Blocks:
    """A new file, with a checksum for every block of it."""

    def __init__(self, path: Path, block_bytes: int) -> None:
        self.nbytes = 0
        self.checks = array("I")
        self._file: BinaryIO = path.open("xb", buffering=0)
        self._pending = np.empty(block_bytes, np.uint8)
        self._filled = 0

    def append(self, data: Memory) -> None:
        """Add bytes at the end."""
        self.nbytes += data.nbytes
        block = len(self._pending)
        while data.nbytes:
            if not self._filled and data.nbytes >= block:
                self._write(data[:block])
                data = data[block:]
                continue
            some = min(data.nbytes, block - self._filled)
            self._pending[self._filled : self._filled + some] = data[:some]
            self._filled, data = self._filled + some, data[some:]
            if self._filled == block:
                self._flush()

    def close(self) -> None:
        """Write what is left."""
        self._flush()
        self._pending = self._pending[:0]
        self._file.close()

    def abandon(self) -> None:
        """Write nothing more."""
        self._file.close()

    def _flush(self) -> None:
        if self._filled:
            self._write(self._pending[: self._filled])
            self._filled = 0

    def _write(self, data: Memory) -> None:
        rest = data.data
        self.checks.append(masked_crc32c(rest))
        while rest.nbytes:
            rest = rest[self._file.write(rest) :]


class Buffer:
    """One buffer, wherever it lies by now. Of offsets it takes lengths, and begins with a 0."""

    def __init__(self, *, offsets: bool = False) -> None:
        self._place: Growing | Blocks = Growing()
        self._offsets = offsets
        self._end = 0
        if offsets:
            self._place.append(_bytes_of(np.zeros(1, np.int64)))

    @property
    def nbytes(self) -> int:
        """How many bytes it has."""
        return self._place.nbytes

    def append(self, values: NDArray[Any]) -> None:
        """Add values, or lengths."""
        if self._offsets:
            values = self._end + np.cumsum(values, dtype=np.int64)
            self._end = int(values[-1]) if len(values) else self._end
        self._place.append(_bytes_of(values))

    def move_to(self, path: Path, block_bytes: int) -> None:
        """Go on in a file."""
        file = Blocks(path, block_bytes)
        if isinstance(self._place, Growing):
            file.append(self._place.all())
        self._place = file

    def in_memory(self) -> Memory:
        """Return all bytes of a buffer that never went to a file; nothing can be added any more."""
        if isinstance(self._place, Blocks):
            raise TypeError("the buffer lies in a file")
        self._place.trim()
        return self._place.all()

    def in_file(self) -> Blocks:
        """Return the file, complete."""
        if isinstance(self._place, Growing):
            raise TypeError("the buffer lies in memory")
        self._place.close()
        return self._place

    def abandon(self) -> None:
        """Give up what is there."""
        if isinstance(self._place, Blocks):
            self._place.abandon()
        self._place = Growing()


def _bytes_of(values: NDArray[Any]) -> Memory:
    flat = np.ascontiguousarray(values).reshape(-1)
    return flat.view(np.uint8) if flat.size else np.empty(0, np.uint8)
