"""One state as two files, and which of them are whole."""

import hashlib
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from anybatch.handover import DISK, Disk, Json, place, read_sealed, write_sealed
from anybatch.train.checkpoint_arrays import StoredArrays, pieces_of

Arrays = Mapping[str, NDArray[Any]]

PASSING_PREFIX = ".passing-"
"""Folders for what is on its way into a state, or out of it."""

_NAME = re.compile(r"state-(\d{6,})\.json")
_READ_BYTES = 1 << 20
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class State:
    """Training between two updates: arrays by name, and everything else as JSON has it.

    `arrays` may be a mapping that makes each array when it is asked for: then there is only one at a time.
    """

    step: int
    facts: Json
    arrays: Arrays
    identity: Mapping[str, str] = field(default_factory=dict)
    """What it belonged to; filled in when it is read."""


def write_state(folder: Path, identity: Mapping[str, str], state: State, *, disk: Disk = DISK) -> Path:
    """Write a state beside those that are there, and return its JSON, which makes it one."""
    number = max(_numbers(folder), default=0) + 1
    hashed = _Hashed()
    place(_arrays_file(folder, number), hashed.passing(pieces_of(state.arrays)), disk=disk)
    document = {
        "format": _FORMAT,
        "step": state.step,
        "identity": dict(identity),
        "facts": state.facts,
        "arrays": {"bytes": hashed.n_bytes, "blake2b": hashed.digest()},
    }
    write_sealed(_json_file(folder, number), document, disk=disk)
    return _json_file(folder, number)


def newest_whole(folder: Path) -> State | None:
    """Return the newest state whose every byte is what was written."""
    for number in sorted(_numbers(folder), reverse=True):
        document = read_sealed(_json_file(folder, number))
        if document is None or document.get("format") != _FORMAT:
            continue
        if _intact(_arrays_file(folder, number), document["arrays"]):
            arrays = StoredArrays(_arrays_file(folder, number))
            return State(document["step"], document["facts"], arrays, document["identity"])
    return None


def remove_older(folder: Path, *, kept: int, disk: Disk = DISK) -> None:
    """Remove all states but the newest few."""
    for number in sorted(_numbers(folder), reverse=True)[kept:]:
        # its JSON first: without it the arrays are nobody's
        with suppress(OSError):
            disk.remove(_json_file(folder, number))
            disk.remove(_arrays_file(folder, number))


def tidy(folder: Path) -> None:
    """Remove what a writer that was killed has left: half files, and arrays without their JSON."""
    for file in folder.glob(".state-*.tmp"):
        file.unlink(missing_ok=True)
    for passing in folder.glob(f"{PASSING_PREFIX}*"):
        shutil.rmtree(passing, ignore_errors=True)
    for file in folder.glob("state-*.safetensors"):
        if not file.with_suffix(".json").exists():
            file.unlink(missing_ok=True)


def _numbers(folder: Path) -> Iterator[int]:
    for file in folder.iterdir():
        found = _NAME.fullmatch(file.name)
        if found is not None:
            yield int(found[1])


def _json_file(folder: Path, number: int) -> Path:
    return folder / f"state-{number:06}.json"


def _arrays_file(folder: Path, number: int) -> Path:
    return folder / f"state-{number:06}.safetensors"


def _intact(file: Path, expected: Json) -> bool:
    hashed = _Hashed()
    try:
        with file.open("rb") as opened:
            for _ in hashed.passing(iter(lambda: opened.read(_READ_BYTES), b"")):
                pass
    except OSError:
        return False
    return {"bytes": hashed.n_bytes, "blake2b": hashed.digest()} == expected


class _Hashed:
    """Counts and hashes bytes on their way to somewhere else."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self.n_bytes = 0

    def passing(self, pieces: Iterator[Any]) -> Iterator[Any]:
        for piece in pieces:
            self._hash.update(piece)
            self.n_bytes += memoryview(piece).nbytes
            yield piece

    def digest(self) -> str:
        return self._hash.hexdigest()
