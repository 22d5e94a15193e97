"""What a step moves, and how to put it back."""

from typing import Any

import tensorflow as tf


class Undo:
    """Reads some variables at once and can put them back as they were.

    A read shares its memory with the variable until somebody writes; only then TensorFlow copies. So looking
    costs next to nothing, and putting back allocates nothing, which matters when memory has just run out.
    """

    def __init__(self, variables: list[Any]) -> None:
        # by identity: Keras lists shared layers' variables more than once
        self.variables = list({id(variable): variable for variable in variables}.values())
        self._read = tf.function(lambda: [variable.value for variable in self.variables], autograph=False)

    def taken(self) -> list[Any]:
        """Return the present values."""
        return self._read() if self.variables else []

    def put_back(self, values: list[Any]) -> None:
        """Give every variable the value it had."""
        for variable, value in zip(self.variables, values, strict=True):
            variable.assign(value)

    @property
    def n_bytes(self) -> int:
        """What a copy of all of them takes."""
        return sum(n_bytes(variable) for variable in self.variables)


def n_bytes(variable: Any) -> int:
    """Return the memory of one variable."""
    value = variable.value
    return int(value.shape.num_elements() or 0) * int(value.dtype.size)


def moved_by_a_part(model: Any) -> list[Any]:
    """Return what a forward pass and its metrics move: seeds, statistics, counts."""
    return [*model.non_trainable_variables, *model.metrics_variables]


def moved_by_a_step(model: Any) -> list[Any]:
    """Return all that one whole update moves."""
    slots = model.optimizer.variables if model.optimizer is not None else []
    return [*model.variables, *model.metrics_variables, *slots]
