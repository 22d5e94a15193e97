"""What happened, one line each, for whoever starts next: parent and child may both have been killed."""

import os
from pathlib import Path

from anybatch.handover.disk import DISK, Disk
from anybatch.handover.sealed import Json, sealed, unsealed

_FILE = "journal.jsonl"


class Journal:
    """Lines of sealed JSON that are only ever added."""

    def __init__(self, folder: Path, *, disk: Disk = DISK) -> None:
        self._file = folder / _FILE
        self._disk = disk

    def add(self, entry: Json) -> None:
        """Write one line and wait until it is on the disk."""
        handle = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            # behind half a line that a killed writer left, a new one begins
            torn = os.lseek(handle, 0, os.SEEK_END) > 0 and _last_byte(handle) != b"\n"
            self._disk.write(handle, b"\n" * torn + sealed(entry) + b"\n")
            self._disk.sync(handle)
        finally:
            os.close(handle)

    def entries(self) -> list[Json]:
        """Return every whole line, oldest first."""
        try:
            lines = self._file.read_bytes().splitlines()
        except OSError:
            return []
        return [entry for entry in map(unsealed, lines) if entry is not None]


def _last_byte(handle: int) -> bytes:
    return os.pread(handle, 1, os.lseek(handle, 0, os.SEEK_END) - 1)
