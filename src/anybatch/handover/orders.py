"""What the parent tells the child before it starts."""

import os
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from secrets import token_hex
from typing import Any

from anybatch.handover.sealed import read_sealed, write_sealed

FOLDER_VARIABLE = "ANYBATCH_HANDOVER"
OWNER_VARIABLE = "ANYBATCH_SUPERVISED"
"""Which process is supervised: what it starts inherits the variables, but not its state and its voice."""
_FILE = "orders.json"


@dataclass(frozen=True, slots=True)
class Orders:
    """One attempt's limits. None: the child decides for itself."""

    attempt: int = 1
    state_folder: str | None = None
    """Where `fit` keeps its state if the script names no folder."""
    limit_bytes: int | None = None
    """All that the child and its children may hold; the script's own `memory=` may be less."""
    largest_part: int | None = None
    """No part of a batch may have more samples."""
    prefetch: int | None = None
    """No stream may be further ahead, in batches."""
    cache_bytes: int | None = None
    """No cache in memory may be larger."""
    run: str = ""
    """The same for all attempts of one run."""

    def write(self, folder: Path) -> None:
        """Lay the orders down in the folder that both sides know."""
        write_sealed(folder / _FILE, asdict(self))


def new_run() -> str:
    """Return what tells a run from all others."""
    return token_hex(8)


def read_orders(folder: Path) -> Orders | None:
    """Return the orders in a folder; fields of a newer version are left out."""
    found = read_sealed(folder / _FILE)
    if found is None:
        return None
    known: dict[str, Any] = {field.name: found[field.name] for field in fields(Orders) if field.name in found}
    return Orders(**known)


def own_papers() -> Path | None:
    """Return the folder in which this process and its supervisor talk; None if nobody supervises it.

    A process that a supervised script has started is none: two that wrote one state and one heartbeat would
    take each other's.
    """
    folder, owner = os.environ.get(FOLDER_VARIABLE), os.environ.get(OWNER_VARIABLE)
    return Path(folder) if folder and owner in {None, str(os.getpid())} else None


def received_orders() -> Orders | None:
    """Return what this process was told by `anybatch run`; None if nobody supervises it.

    What a supervised script starts has to keep within the same limits, but has no state of its own there.
    """
    folder = os.environ.get(FOLDER_VARIABLE)
    orders = read_orders(Path(folder)) if folder else None
    return orders if orders is None or own_papers() else replace(orders, state_folder=None, run="")
