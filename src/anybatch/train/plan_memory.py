"""Plans that were measured before, in the user's cache folder: the second time nothing is probed."""

import hashlib
import json
import os
import platform
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from anybatch import __version__
from anybatch.handover import Json, read_sealed, write_sealed
from anybatch.memory import PeakModel, Peaks
from anybatch.train.backends import backend_of
from anybatch.train.model_config import config_of, named, uncounted
from anybatch.train.plan_pace import Pace
from anybatch.train.plan_uses import Sizes

_FORMAT = 7


@dataclass(frozen=True, slots=True)
class Known:
    """What probing has found out about a model."""

    peaks: Peaks
    sizes: Sizes
    paces: tuple[Pace, ...] = ()
    """How fast parts were that fit, the chosen one and smaller ones, where that was timed."""


def key_of(model: Any, columns: Any, memory: str = "") -> str:
    """Return a text that differs where the peak may: model, optimizer, shapes, versions, machine, memory."""
    optimizer = model.optimizer
    told = {
        # a model of the user's own class may have no config: then shapes of weights and inputs have to do
        "model": [type(model).__name__, uncounted(config_of(model))],
        "weights": [[list(one.shape), str(one.dtype)] for one in model.weights],
        "trainable": len(model.trainable_weights),
        "optimizer": [type(optimizer).__name__, _settings(optimizer)],
        "loss": named(model.loss),
        "steps": [model.run_eagerly, bool(model.jit_compile)],
        "inputs": [[list(leaf.shape[1:]), str(leaf.dtype)] for leaf in _leaves(columns)],
        "memory": memory,
        "framework": backend_of(model).peaks_depend_on(),
        "machine": [platform.machine(), os.cpu_count(), platform.python_version(), __version__, _FORMAT],
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:32]


def remembered(key: str) -> Known | None:
    """Return what was found out for a key, or None."""
    found = read_sealed(_file(key))
    try:
        return None if found is None else _known(found)
    except (KeyError, TypeError, ValueError):
        return None


def _known(found: Json) -> Known:
    layers = tuple((str(name), int(n_bytes)) for name, n_bytes in found["sizes"].pop("layers"))
    whole, split, *bounds = found["peaks"]
    return Known(
        peaks=Peaks(PeakModel(*whole), PeakModel(*split), *map(int, bounds)),
        sizes=Sizes(**found["sizes"], layers=layers),
        paces=tuple(Pace(*one) for one in found["paces"]),
    )


def remember(key: str, known: Known) -> None:
    """Keep what was found out for the next time, if there is a place for it."""
    content: Json = {
        "peaks": astuple(known.peaks),
        "sizes": asdict(known.sizes),
        "paces": [astuple(pace) for pace in known.paces],
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


def _settings(optimizer: Any) -> Any:
    """Return an optimizer's settings but those on which no memory depends; Keras counts its names up."""
    config = config_of(optimizer) or {}
    return {name: one for name, one in config.items() if name not in {"learning_rate", "name"}}


def _leaves(columns: Any) -> list[Any]:
    if isinstance(columns, dict):
        return [leaf for name in sorted(columns) for leaf in _leaves(columns[name])]
    if isinstance(columns, list | tuple):
        return [leaf for column in columns for leaf in _leaves(column)]
    return [] if columns is None else [columns]
