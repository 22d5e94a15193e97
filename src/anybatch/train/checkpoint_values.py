"""Values of Python as JSON and arrays, and back: what cannot be kept exactly is not kept at all."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

_PLAIN = (bool, int, float, str, type(None))
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Kept:
    """How JSON tells a value."""

    told: Any


def kept(value: Any, name: str, arrays: dict[str, np.ndarray[Any, Any]], *, depth: int = 0) -> Kept | None:
    """Return a value as JSON, its arrays put aside under names that begin with `name`; None for an object.

    >>> kept({"best": float("inf"), "seen": [1, (2, 3)]}, "a", {})
    Kept(told={'mapping': [['best', inf], ['seen', {'list': [1, {'tuple': [2, 3]}]}]]})
    >>> kept(print, "a", {})
    """
    if depth > _DEEPEST:
        return None
    # exact types: a subclass of int may be more than its number
    if type(value) in _PLAIN:
        return Kept(value)
    if isinstance(value, np.ndarray | np.generic):
        return _kept_array(value, name, arrays)
    if isinstance(value, FunctionType):
        return _kept_function(value)
    if type(value) in (list, tuple):
        parts = [kept(one, f"{name}/{at}", arrays, depth=depth + 1) for at, one in enumerate(value)]
        return _all_or_nothing(type(value).__name__, parts)
    if type(value) is dict and all(type(key) is str for key in value):
        parts = [kept(one, f"{name}/{key}", arrays, depth=depth + 1) for key, one in value.items()]
        whole = _all_or_nothing("mapping", parts)
        return whole and Kept(
            {"mapping": [list(pair) for pair in zip(value, whole.told["mapping"], strict=True)]}
        )
    return None


def restored(value: Kept, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Any:
    """Return the value again."""
    told = value.told
    if not isinstance(told, dict):
        return told
    ((kind, content),) = told.items()
    match kind:
        case "list":
            return [restored(Kept(one), arrays) for one in content]
        case "tuple":
            return tuple(restored(Kept(one), arrays) for one in content)
        case "mapping":
            return {key: restored(Kept(one), arrays) for key, one in content}
        case "array":
            return arrays[content]
        case "number":
            return arrays[content].reshape(())[()]
        case "function":
            return _function(*content)
    raise ValueError(f"{kind!r} is no kind of value")


def _kept_array(value: Any, name: str, arrays: dict[str, np.ndarray[Any, Any]]) -> Kept | None:
    if value.dtype.hasobject or value.dtype.names is not None or value.dtype.kind in "USMm":
        return None
    # a copy: whoever owns the array goes on changing it
    arrays[name] = np.array(value)
    return Kept({"array" if isinstance(value, np.ndarray) else "number": name})


def _kept_function(value: FunctionType) -> Kept | None:
    """Return a function of Keras by its name: `EarlyStopping` learns late whether less is better."""
    name = (value.__module__, value.__qualname__)
    return Kept({"function": list(name)}) if _function(*name) is value else None


def _function(module: str, name: str) -> Any:
    # no other module's: a state file must not be able to choose what is called
    if module.partition(".")[0] != "keras":
        return None
    return getattr(sys.modules.get(module), name, None)


def _all_or_nothing(kind: str, parts: list[Kept | None]) -> Kept | None:
    whole = [part.told for part in parts if part is not None]
    return Kept({kind: whole}) if len(whole) == len(parts) else None
