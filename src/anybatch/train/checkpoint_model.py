"""A Keras model's variables as arrays by name, without naming the framework they live in."""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anybatch.train.backends import backend_of
from anybatch.train.checkpoint_arrays import in_pieces
from anybatch.train.model_config import layers_of, named

PIECE_BYTES = 8 << 20


class Snapshot(Mapping[str, NDArray[Any]]):
    """Weights, seed generators, metrics and the optimizer's variables as they are at one moment.

    Keras' own lists hold all of them: `variables` those of layers, seed generators and metrics, the
    optimizer's its slots, its counter and, under mixed precision, the loss scale. A read shares its memory
    with the variable until somebody writes to that; so taking one costs next to nothing, and what training
    overwrites before it is on the disk is copied by the framework.
    """

    def __init__(self, model: Any) -> None:
        self._values = {name: _read(variable) for name, variable in named_variables(model)}

    def __getitem__(self, name: str) -> NDArray[Any]:
        return np.asarray(self._values[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def restore_model(
    model: Any, arrays: Mapping[str, NDArray[Any]], stored: Mapping[str, str | None] = MappingProxyType({})
) -> None:
    """Put arrays back into the variables of the same names, one at a time.

    `stored`: under which other name an array lies; None for a variable that stays as it is. Large ones go
    piece by piece: a table of 50 MB would take 100 MB more on its way from a file.
    """
    assign_pieces = backend_of(model).assign_pieces
    for name, variable in named_variables(model):
        found = stored.get(name, name)
        if found is not None:
            assign_pieces(variable, in_pieces(arrays, found, PIECE_BYTES))


def model_identity(model: Any) -> str:
    """Return what has to be the same for training to go on: layers and their settings, variables and loss."""
    trainable = {id(variable) for variable in model.trainable_variables}
    told = [
        f"{_plain(variable.path)} {tuple(variable.shape)} {variable.dtype} {id(variable) in trainable}"
        for variable in model.variables
        if "seed_generator" not in variable.path
    ]
    weights = sum(int(np.prod(variable.shape)) for variable in model.trainable_variables)
    optimizer, loss = type(model.optimizer).__name__, named(model.loss)
    variables, layers = _digest(told), _digest(layers_of(model))
    return (
        f"{weights:,} weights in {len(told)} variables ({variables}) of layers ({layers}) "
        f"with {optimizer} and loss {loss}"
    )


def _digest(told: Any) -> str:
    return sha256(json.dumps(told).encode()).hexdigest()[:8]


def named_variables(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield every variable once, by whose it is and by number: metrics', the model's, the optimizer's."""
    seen: set[int] = set()
    lists = {
        "metrics": model.metrics_variables,
        "model": model.variables,
        "optimizer": model.optimizer.variables if model.optimizer is not None else [],
    }
    for owner, variables in lists.items():
        fresh = [variable for variable in variables if id(variable) not in seen]
        seen.update(id(variable) for variable in fresh)
        # by number: paths can occur twice, and count up when a model is built twice in one process
        yield from ((array_name(owner, number), variable) for number, variable in enumerate(fresh))


def array_name(owner: str, number: int) -> str:
    """Return what the array of a variable is called.

    >>> array_name("optimizer", 3)
    'optimizer/00003'
    """
    return f"{owner}/{number:05}"


def _read(variable: Any) -> Any:
    value = variable.value
    read = getattr(value, "read_value", None)
    return value if read is None else read()


def _plain(path: str) -> str:
    """Return a variable's path without the numbers that Keras counts up: `dense_3/kernel` is `dense/kernel`.

    >>> _plain("dense_3/kernel")
    'dense/kernel'
    """
    return "/".join(part.rstrip("0123456789").rstrip("_") for part in path.split("/"))
