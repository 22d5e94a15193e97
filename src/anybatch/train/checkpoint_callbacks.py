"""The state of callbacks, which have no way of telling it: what they remember, found by looking.

Numbers, texts, lists and arrays among a callback's attributes are kept if they changed since training began:
`EarlyStopping` counts and holds its best weights there, `ReduceLROnPlateau` its cooldown, `ModelCheckpoint`
its best value, `History` all it has seen, a user's own callback whatever it counts. What did not change is
configuration, and that is the new script's to choose. Functions, files and models are left as they are.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from anybatch.errors import AnybatchWarning
from anybatch.handover import Json
from anybatch.train.checkpoint_values import Kept, kept, restored

_NOT_REMEMBERED = frozenset({"model", "_model", "params", "validation_data"})


class Memories:
    """What callbacks remember; made after `on_train_begin`, which resets them."""

    def __init__(self, callbacks: Sequence[Any]) -> None:
        self._callbacks = list(callbacks)
        self._told = False
        self._fresh = [_remembered(callback, {}, "") for callback in self._callbacks]

    def state(self) -> tuple[Json, dict[str, NDArray[Any]]]:
        """Return what all callbacks have learnt since, as JSON and as arrays by name."""
        arrays: dict[str, NDArray[Any]] = {}
        told = []
        for number, (callback, fresh) in enumerate(zip(self._callbacks, self._fresh, strict=True)):
            now = _remembered(callback, arrays, f"callback/{number}")
            changed = {
                name: value for name, value in now.items() if name not in fresh or fresh[name] != value
            }
            told.append({"kind": type(callback).__name__, "remembers": changed})
        return {"callbacks": told}, arrays

    def restore(self, facts: Json, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Give callbacks back what they had learnt, told apart by kind and order."""
        left = list(facts.get("callbacks", []))
        unknown = []
        for callback in self._callbacks:
            found = next((one for one in left if one["kind"] == type(callback).__name__), None)
            if found is None:
                unknown.append(type(callback).__name__)
                continue
            left.remove(found)
            for name, told in found["remembers"].items():
                setattr(callback, name, restored(Kept(told), arrays))
        self._tell(unknown, [one["kind"] for one in left if one["remembers"]])

    def _tell(self, unknown: list[str], forgotten: list[str]) -> None:
        """Say once that memories found no owner while a callback found none: its class may have a new name.

        A callback that was merely added has nothing to lose, and one that was taken out was meant to go.
        """
        if unknown and forgotten and not self._told:
            self._told = True
            text = f"what callbacks had learnt is lost: the state knows {', '.join(forgotten)}, and there is"
            warnings.warn(
                f"{text} {', '.join(unknown)} instead, which starts anew; memory goes by a class's name",
                AnybatchWarning,
                stacklevel=4,
            )


def _remembered(callback: Any, arrays: dict[str, NDArray[Any]], prefix: str) -> Json:
    """Return the attributes that are values. Arrays are told by their names, which begin with the prefix."""
    found: Json = {}
    for name, value in vars(callback).items():
        told = None if name in _NOT_REMEMBERED else kept(value, f"{prefix}/{name}", arrays)
        if told is not None:
            found[name] = told.told
    return found
