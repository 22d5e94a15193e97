"""One adapter per framework, reached by name, and what it has to offer."""

import sys
from importlib import import_module
from typing import Any, Protocol

from anybatch.train.refusals import UnknownBackend

BACKENDS = ("tensorflow",)


class Steps(Protocol):
    """The step functions of one model. A call happens whole, or raises and has moved nothing."""

    def update_whole(self, batch: Any) -> Any: ...
    def test_whole(self, batch: Any) -> Any: ...
    def predict(self, batch: Any) -> Any: ...
    def begin(self) -> None: ...
    def add_part(self, part: Any, share: float) -> None: ...
    def add_test_part(self, part: Any, share: float) -> None: ...
    def commit(self, rows: int, *, sizes_were_right: bool, careful: bool = False) -> Any: ...
    def commit_test(self, rows: int) -> Any: ...


def load_backend(name: str) -> Any:
    """Import one framework adapter, and only that one."""
    if name not in BACKENDS:
        raise UnknownBackend(name, BACKENDS)
    return import_module(f"anybatch.train.backends.{name}")


def loaded_backend() -> Any:
    """Return the adapter for the framework that Keras runs on: whoever has a model has imported it."""
    keras = sys.modules.get("keras")
    if keras is None:
        raise TypeError("Keras 3 is not imported, so there is no model to train; import keras first")
    return load_backend(keras.config.backend())


def backend_of(model: Any) -> Any:
    """Return the adapter for a model's framework."""
    keras = sys.modules.get("keras")
    if keras is None or not isinstance(model, keras.Model):
        raise TypeError(f"a Keras 3 model is needed, and this is {type(model).__name__}")
    return loaded_backend()


def shared_backend_of(model: Any) -> Any:
    """Return what a model's framework needs besides when several workers train it."""
    return import_module(f"{backend_of(model).__name__}_shared")
