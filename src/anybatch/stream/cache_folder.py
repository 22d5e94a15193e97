"""Columns on disk: written beside, named when they are complete, checked when they are opened."""

import fcntl
import json
import logging
import mmap
import os
import shutil
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from anybatch._native import masked_crc32c
from anybatch.errors import AnybatchError, Damage
from anybatch.stream.layout import Memory, columns_in, from_json
from anybatch.stream.table import Table, places
from anybatch.units import size

FORMAT = 1

_MANIFEST = "manifest.json"
_CHECKS = "checks.bin"
# so much is read and compared with its checksums before it is used again; of more, an even sample
_CHECKED_BYTES = 1 << 30

_log = logging.getLogger("anybatch")


class NoRoomOnDisk(AnybatchError, OSError):
    """A disk that a cache does not fit on."""

    def __init__(self, folder: str, needed: int, free: int) -> None:
        super().__init__(folder, needed, free)
        self.folder = folder
        self.needed = needed
        self.free = free

    def __str__(self) -> str:
        return (
            f"`cache` needs {size(self.needed, up=True)} in `{self.folder}` and {size(self.free)} are free; "
            "cache(path) names another folder, a higher limit_memory keeps more in memory"
        )


def default_root() -> Path:
    """Return where caches lie that were given no folder: the user's own cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "anybatch" / "columns"


class Generation:
    """One attempt to fill a cache: a folder of its own, which nobody else reads before it is complete."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / f"{os.getpid()}-{os.urandom(4).hex()}"
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / "lock"):
            self.path.mkdir()
            # held for as long as this process lives: then nobody takes the folder for a leftover
            self._lock = _lock(self.path / "lock")

    def check_room(self, needed: int) -> None:
        """Raise if so many more bytes have no room."""
        free = shutil.disk_usage(self.path).free
        if needed > free:
            raise NoRoomOnDisk(str(self.folder), needed, free)

    def complete(self, manifest: dict[str, Any], checks: "Sequence[array[int]]") -> Table:
        """Put everything on the disk and return it, mapped. Others see it after `publish` only."""
        joined = array("I")
        for one in checks:
            joined.extend(one)
        (self.path / _CHECKS).write_bytes(joined.tobytes())
        manifest["checks"] = masked_crc32c(joined.tobytes())
        return mapped_table(self.path, manifest)

    def publish(self, manifest: dict[str, Any]) -> None:
        """Make this the content of the folder, unless somebody else has put the same there meanwhile."""
        for file in self.path.iterdir():
            _sync(file)
        _sync(self.path)
        with _locked(self.folder / "lock"):
            present = _manifest_in(self.folder)
            if present is None or present["fingerprint"] != manifest["fingerprint"]:
                _replace_manifest(self.folder, {**manifest, "generation": self.path.name})
            self.close()
            _sweep(self.folder)

    def remove(self) -> None:
        """Leave nothing behind. What is mapped stays readable."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.close()

    def close(self) -> None:
        """Let the folder go."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def load(folder: Path, fingerprint: str) -> Table | None:
    """Return what a folder holds if it was made from the same, complete and sound."""
    for _ in range(3):
        manifest = _manifest_in(folder)
        if manifest is None:
            return None
        if manifest["fingerprint"] != fingerprint:
            _log.info("cache in %s: made from other files or functions, so it is made anew", folder)
            return None
        try:
            return _checked_table(folder / manifest["generation"], manifest)
        except (OSError, ValueError, KeyError, TypeError) as problem:
            if manifest == _manifest_in(folder):
                _drop(folder, manifest, problem)
                return None
            # it was replaced by another process between the two looks
    return None


def _drop(folder: Path, manifest: dict[str, Any], problem: Exception) -> None:
    _log.warning("cache in %s is damaged (%s), so it is made anew", folder, problem)
    with _locked(folder / "lock"):
        if manifest == _manifest_in(folder):
            (folder / _MANIFEST).unlink()


def mapped_table(path: Path, manifest: dict[str, Any]) -> Table:
    """Return the columns in a folder, mapped: they take page cache, not memory of the process."""
    memory = {name: _mapped(path / name, n_bytes) for name, n_bytes in manifest["files"]}
    layouts = from_json(manifest["structure"])
    special = [
        memory[manifest[what]].view(np.int64) if manifest[what] else None
        for what in ("slots", "numbers", "row_bounds", "number_bounds")
    ]
    damages: tuple[Damage, ...] = tuple((str(file), at, n, why) for file, at, n, why in manifest["damages"])
    return Table(
        layouts=layouts,
        columns=columns_in(layouts, [memory[name] for name in manifest["columns"]], manifest["rows"]),
        rows=manifest["rows"],
        positions=manifest["positions"],
        row_bytes=manifest["row_bytes"],
        mean_bytes=manifest["mean_bytes"],
        slots=special[0],
        damages=damages,
        **places(*special[1:]),
    )


def _checked_table(path: Path, manifest: dict[str, Any]) -> Table:
    checks_bytes = (path / _CHECKS).read_bytes()
    if masked_crc32c(checks_bytes) != manifest["checks"]:
        raise ValueError(f"{_CHECKS} does not match its checksum")
    checks, at, block = array("I", checks_bytes), 0, manifest["block_bytes"]
    total = sum(n_bytes for _, n_bytes in manifest["files"])
    every = max(1, -(-total // _CHECKED_BYTES))
    for name, n_bytes in manifest["files"]:
        memory = _mapped(path / name, n_bytes)
        blocks = -(-n_bytes // block)
        for number in range(0, blocks, every):
            if masked_crc32c(memory[number * block : (number + 1) * block].data) != checks[at + number]:
                raise ValueError(f"{name} does not match its checksum in block {number}")
        at += blocks
    return mapped_table(path, manifest)


def _mapped(file: Path, n_bytes: int) -> Memory:
    with file.open("rb") as opened:
        found = os.fstat(opened.fileno()).st_size
        if found != n_bytes:
            raise ValueError(f"{file.name} has {found:,} bytes instead of {n_bytes:,}")
        if not n_bytes:
            return np.empty(0, np.uint8)
        return np.frombuffer(mmap.mmap(opened.fileno(), n_bytes, access=mmap.ACCESS_READ), np.uint8)


def _manifest_in(folder: Path) -> dict[str, Any] | None:
    manifest: dict[str, Any] | None
    try:
        check, _, content = (folder / _MANIFEST).read_bytes().partition(b"\n")
        manifest = dict(json.loads(content))
        sound = int(check) == masked_crc32c(content) and manifest["format"] == FORMAT
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        sound, manifest = False, None
    if not sound:
        _log.warning("cache in %s has a damaged or older manifest, so it is made anew", folder)
        return None
    return manifest


def _replace_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    content = json.dumps(manifest).encode()
    new = folder / f".{_MANIFEST}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    new.write_bytes(b"%d\n%s" % (masked_crc32c(content), content))
    _sync(new)
    new.replace(folder / _MANIFEST)
    _sync(folder)


def _sweep(folder: Path) -> None:
    """Remove what the manifest does not name and no living process works on."""
    manifest = _manifest_in(folder)
    named = None if manifest is None else manifest["generation"]
    for path in folder.iterdir():
        if path.is_dir() and path.name != named:
            lock = _lock(path / "lock", wait=False)
            if lock is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = _lock(path)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _lock(path: Path, *, wait: bool = True) -> int | None:
    """Return an open file that is locked until it is closed or the process ends; None if it cannot be had."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(handle)
        return None
    return handle


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
