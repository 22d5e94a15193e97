"""Plans that were measured before, in the user's cache folder: the second time nothing is probed."""

import hashlib
import json
import os
import platform
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from anybatch import __version__
from anybatch.handover import Json, read_sealed, write_sealed
from anybatch.memory import PeakModel, Peaks

_FORMAT = 1


def key_of(model: Any, columns: Any, memory: str = "") -> str:
    """Return a text that differs where the peak may: model, optimizer, shapes, versions, machine, memory."""
    optimizer = model.optimizer
    told = {
        "model": [type(model).__name__, _config(model)],
        "weights": [[list(one.shape), str(one.dtype)] for one in model.weights],
        "trainable": len(model.trainable_weights),
        "optimizer": [type(optimizer).__name__, str(getattr(optimizer, "dtype_policy", ""))],
        "loss": str(model.loss),
        "steps": [model.run_eagerly, bool(model.jit_compile)],
        "inputs": [[list(leaf.shape[1:]), str(leaf.dtype)] for leaf in _leaves(columns)],
        "memory": memory,
        "machine": [platform.machine(), os.cpu_count(), platform.python_version(), __version__, _FORMAT],
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:32]


def remembered(key: str) -> Peaks | None:
    """Return the peaks that were measured for a key, or None."""
    found = read_sealed(_file(key))
    try:
        return None if found is None else Peaks(PeakModel(*found["whole"]), PeakModel(*found["split"]))
    except (KeyError, TypeError):
        return None


def remember(key: str, peaks: Peaks) -> None:
    """Keep peaks for the next time, if there is a place for them."""
    content: Json = {
        "whole": [peaks.whole.fixed_bytes, peaks.whole.bytes_per_sample],
        "split": [peaks.split.fixed_bytes, peaks.split.bytes_per_sample],
    }
    with suppress(OSError):
        write_sealed(_file(key), content, durable=False)


def cache_folder() -> Path:
    """Return the folder for plans in the user's cache folder, made if possible."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home) / "anybatch" / "plans"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(gettempdir())
    return folder


def _file(key: str) -> Path:
    return cache_folder() / f"{key}.json"


def _config(model: Any) -> str:
    # a model of the user's own class may have none: then shapes of weights and inputs have to do
    with suppress(Exception):
        return json.dumps(model.get_config(), sort_keys=True, default=str)
    return ""


def _leaves(columns: Any) -> list[Any]:
    if isinstance(columns, dict):
        return [leaf for name in sorted(columns) for leaf in _leaves(columns[name])]
    if isinstance(columns, list | tuple):
        return [leaf for column in columns for leaf in _leaves(column)]
    return [] if columns is None else [columns]
