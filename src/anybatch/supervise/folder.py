"""Where a supervised run keeps its papers."""

import ctypes
import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from anybatch.errors import AnybatchError

_PR_SET_CHILD_SUBREAPER = 36
STATE = "state"
_BESIDE = ".anybatch"


class AlreadyRuns(AnybatchError, RuntimeError):
    """The same command is being supervised already."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.folder = folder

    def __str__(self) -> str:
        return (
            f"the same command runs already, with its state in `{self.folder}`; wait for it, or end it first"
        )


def run_folder(script: str, arguments: Sequence[str], within: Path | None = None) -> Path:
    """Return the folder of one command line, made if need be: beside the script, or where one can write.

    `within`: there and nowhere else, for whoever has a place that outlives the machine.
    """
    told = hashlib.sha256(
        "\0".join((str(Path(script).resolve()), *arguments)).encode(errors="surrogateescape")
    )
    name = f"{Path(script).stem}-{told.hexdigest()[:8]}"
    if within is not None:
        (within / name).mkdir(parents=True, exist_ok=True)
        return within / name
    places = (Path(script).resolve().parent / _BESIDE, Path.cwd() / _BESIDE)
    for place in places:
        with suppress(OSError):
            (place / name).mkdir(parents=True, exist_ok=True)
            if os.access(place / name, os.W_OK):
                return place / name
    folder = Path(tempfile.gettempdir()) / f"anybatch-{os.getuid()}" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def clear(folder: Path) -> None:
    """Remove the papers of a run that has finished: the next one starts afresh."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.parent.name == _BESIDE:
        with suppress(OSError):
            folder.parent.rmdir()


def adopt_orphans() -> None:
    """Let processes whose parent ends become ours: grandchildren count even if the child forgets them."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
