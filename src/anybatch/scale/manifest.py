"""What a job has done, on disk: a journal while it runs, a manifest beside its files when it is finished."""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anybatch.handover import Disk, Journal, Json, Occupied, alone_in, read_sealed, write_sealed
from anybatch.records import refuse_existing, sync_folders
from anybatch.scale.refusals import JobUnderWay

# counts up when the same job would leave other bytes or other values
_FORMAT = 1
_STAGED = "files"
_PLACING = "placing"
_SYNC_SECONDS = 1.0


def job_key(name: str, options: Json, files: Iterable[str]) -> str:
    """Return what tells a job from others: its work, its options, and its files as they are now."""
    facts = [_FORMAT, name, options, [_identity(file) for file in files]]
    return hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=8).hexdigest()


def _identity(file: str) -> list[Any]:
    try:
        found = Path(file).stat()
    except OSError:
        return [file, str(Path(file).absolute())]
    return [file, str(Path(file).absolute()), found.st_size, found.st_mtime_ns]


def folder_without_output(key: str) -> Path:
    """Return where the journal of a job lies that writes nothing but indexes."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "anybatch" / "jobs" / key


class SeldomSyncing(Disk):
    """Every line is written at once, so a killed process loses none; a power cut costs the last second."""

    def __init__(self) -> None:
        self._synced = -float("inf")

    def sync(self, handle: int) -> None:
        # a flush per result would bound a job to a few hundred shards per second
        now = time.monotonic()
        if now - self._synced >= _SYNC_SECONDS:
            super().sync(handle)
            self._synced = now


@contextmanager
def continued(folder: Path) -> Iterator[Journal]:
    """Give the journal of a job. It goes with its folder when the job is finished, and stays if it is not."""
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    journal = Journal(folder, disk=SeldomSyncing())
    try:
        with alone_in(folder):
            yield journal
        # its lock is closed by now: a network file system keeps what is open, under another name
        shutil.rmtree(folder, ignore_errors=True)
    except Occupied:
        raise JobUnderWay(str(folder)) from None
    except BaseException:
        if not journal.entries():
            _forget(folder, made)
        raise


def _forget(folder: Path, made: Sequence[Path]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for one in made:
        with suppress(OSError):
            one.rmdir()


@dataclass(frozen=True, slots=True)
class Output:
    """The files of one job: made in a folder beside their places, moved there when all are complete."""

    to: Path
    key: str

    @property
    def folder(self) -> Path:
        """Where the job keeps its journal."""
        # a dot-file, so that `DIR/*` never matches it
        return self.to / f".anybatch-job-{self.key}"

    @property
    def staged(self) -> Path:
        """Where files are made."""
        return self.folder / _STAGED

    @property
    def manifest(self) -> Path:
        """What says that all files are there."""
        return self.to / f".anybatch-manifest-{self.key}.json"

    def finished(self) -> Any:
        """Return the result of a job that is finished, if its files are as it left them; else None."""
        found = read_sealed(self.manifest)
        if found is None or any(_size(self.to / name) != size for name, size in found["files"].items()):
            return None
        return found["result"]

    def refuse_existing(self, targets: Iterable[Path]) -> None:
        """Raise for the first target that somebody else has made."""
        ours = _placed(Journal(self.folder))
        refuse_existing(target for target in targets if target.name not in ours)

    def place(self, journal: Journal, names: Sequence[str], result: Any) -> None:
        """Move all files to their places, then say so. A start that is killed meanwhile is continued."""
        left = [name for name in names if (self.staged / name).exists()]
        refuse_existing(self.to / name for name in left)
        journal.add({"phase": _PLACING, "names": list(names)})
        for name in left:
            (self.staged / name).replace(self.to / name)
        sync_folders([self.to])
        files = {name: _size(self.to / name) for name in names}
        write_sealed(self.manifest, {"files": files, "result": result})


def _placed(journal: Journal) -> set[str]:
    return {name for entry in journal.entries() if entry["phase"] == _PLACING for name in entry["names"]}


def _size(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except OSError:
        return None
