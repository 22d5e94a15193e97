"""Which folder the state of a `fit` is kept in."""

from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from anybatch.handover import Orders, read_sealed, write_sealed
from anybatch.train.checkpoint import Checkpoint, Identity
from anybatch.train.workers import tell_state_folder

_FITS, _ANEW = count(1), count(1)
_ANEW_FILE = "anew.json"
_OPEN: dict[Path, Checkpoint] = {}
"""Folders this process holds: a `fit` that was interrupted leaves its own to the next."""


def folder_of_this_fit(given: Any, orders: Orders | None) -> Path | None:
    """Return where the state goes: as the script says, else as the supervisor does, else nowhere."""
    if given is not None:
        return Path(given)
    if orders is None or orders.state_folder is None:
        return None
    # the fits of a script come in the same order each time it is run
    return Path(orders.state_folder) / f"fit-{next(_FITS)}"


def opened(folder: Path, identity: Identity, resume: bool, orders: Orders | None = None) -> Checkpoint:
    """Take a folder for the state of one `fit`."""
    folder = folder.resolve()
    left_open = _OPEN.pop(folder, None)
    if left_open is not None:
        left_open.close()
    tell_state_folder(folder)
    begun = "" if resume else _begun_by(orders)
    _OPEN[folder] = Checkpoint.open(folder, identity, resume=resume or _has_begun(folder, begun))
    if begun:
        # without it a restart begins anew once more, no worse
        with suppress(OSError):
            write_sealed(folder / _ANEW_FILE, {"run": begun})
    return _OPEN[folder]


def _begun_by(orders: Orders | None) -> str:
    """Return which `fit` of which supervised run begins anew; nothing if nobody would start it again.

    `resume=False` is meant once: a run that was killed and is started again goes on with its own state.
    """
    return f"{orders.run} {next(_ANEW)}" if orders is not None and orders.run else ""


def _has_begun(folder: Path, begun: str) -> bool:
    return bool(begun) and (read_sealed(folder / _ANEW_FILE) or {}).get("run") == begun
