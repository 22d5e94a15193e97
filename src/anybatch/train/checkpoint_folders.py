"""Which folder the state of a `fit` is kept in."""

from itertools import count
from pathlib import Path
from typing import Any

from anybatch.handover import Orders
from anybatch.train.checkpoint import Checkpoint, Identity
from anybatch.train.workers import tell_state_folder

_FITS = count(1)
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


def opened(folder: Path, identity: Identity, resume: bool) -> Checkpoint:
    """Take a folder for the state of one `fit`."""
    folder = folder.resolve()
    left_open = _OPEN.pop(folder, None)
    if left_open is not None:
        left_open.close()
    tell_state_folder(folder)
    _OPEN[folder] = Checkpoint.open(folder, identity, resume=resume)
    return _OPEN[folder]
