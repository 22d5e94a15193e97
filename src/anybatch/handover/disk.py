"""Files that appear whole or not at all."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

Bytes: TypeAlias = bytes | bytearray | memoryview

TEMPORARY_ENDING = ".tmp"


class Disk:
    """What is asked of a disk, one method per way to fail: tests make each of them fail in turn."""

    def create(self, file: Path) -> int:
        """Open a new file for writing."""
        return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)

    def write(self, handle: int, content: Bytes) -> None:
        """Write all of the bytes, however many calls that takes."""
        rest = memoryview(content).cast("B")
        while rest:
            rest = rest[os.write(handle, rest) :]

    def sync(self, handle: int) -> None:
        """Wait until the file's bytes are on the disk."""
        os.fsync(handle)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file its name; whatever had that name is gone."""
        old.replace(new)

    def sync_folder(self, folder: Path) -> None:
        """Wait until the names in a folder are on the disk."""
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def remove(self, file: Path) -> None:
        """Remove a file, if it is there."""
        file.unlink(missing_ok=True)


DISK = Disk()


def place(file: Path, pieces: Iterable[Bytes], *, durable: bool = True, disk: Disk = DISK) -> None:
    """Write a file beside its place and rename it. `durable`: a power cut does not undo it; two flushes."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.{os.urandom(4).hex()}{TEMPORARY_ENDING}")
    try:
        _write(temporary, pieces, durable, disk)
        disk.rename(temporary, file)
    except BaseException:
        with suppress(OSError):
            disk.remove(temporary)
        raise
    if durable:
        disk.sync_folder(file.parent)


def _write(file: Path, pieces: Iterable[Bytes], durable: bool, disk: Disk) -> None:
    handle = disk.create(file)
    try:
        for piece in pieces:
            disk.write(handle, piece)
        if durable:
            disk.sync(handle)
    finally:
        os.close(handle)
