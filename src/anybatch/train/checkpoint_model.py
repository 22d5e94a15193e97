"""A Keras model's variables as arrays by name, without naming the framework they live in."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ModelArrays(Mapping[str, NDArray[Any]]):
    """Weights, seed generators, metrics and the optimizer's variables, each copied when it is asked for.

    Keras' own lists hold all of them: `variables` those of layers, seed generators and metrics, the
    optimizer's its slots, its counter and, under mixed precision, the loss scale.
    """

    def __init__(self, model: Any) -> None:
        self._variables = dict(_named(model))

    def __getitem__(self, name: str) -> NDArray[Any]:
        return np.array(self._variables[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    @property
    def n_bytes(self) -> int:
        """How much memory a copy of all takes."""
        return sum(
            int(np.prod(variable.shape)) * np.dtype(_numpy_name(variable.dtype)).itemsize
            for variable in self._variables.values()
        )

    def copied(self) -> dict[str, NDArray[Any]]:
        """Return all of them, as they are at this moment."""
        return {name: self[name] for name in self}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Put arrays back into the variables of the same names, one at a time."""
        for name, variable in self._variables.items():
            variable.assign(arrays[name])


def model_identity(model: Any) -> str:
    """Return what has to be the same for arrays to fit a model: its variables' names, shapes and types."""
    trainable = {id(variable) for variable in model.trainable_variables}
    told = [
        f"{variable.path} {tuple(variable.shape)} {variable.dtype} {id(variable) in trainable}"
        for variable in model.variables
        if "seed_generator" not in variable.path
    ]
    weights = sum(int(np.prod(variable.shape)) for variable in model.trainable_variables)
    digest = sha256("\n".join(told).encode()).hexdigest()[:8]
    optimizer = type(model.optimizer).__name__
    return f"{len(told)} variables with {weights:,} weights ({digest}) and {optimizer}"


def _named(model: Any) -> Iterator[tuple[str, Any]]:
    seen: set[int] = set()
    lists = {
        "model": model.variables,
        "metrics": model.metrics_variables,
        "optimizer": model.optimizer.variables if model.optimizer is not None else [],
    }
    for owner, variables in lists.items():
        number = 0
        for variable in variables:
            if id(variable) in seen:
                continue
            seen.add(id(variable))
            # paths can occur twice, numbers cannot
            yield f"{owner}/{number:04}/{variable.path}", variable
            number += 1


def _numpy_name(dtype: str) -> str:
    return {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}.get(dtype, dtype)
