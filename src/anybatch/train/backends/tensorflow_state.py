"""What a step moves, and how to put it back."""

from collections.abc import Iterable
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
        read = tf.function(lambda: [variable.value for variable in self.variables], autograph=False)
        # called for every part: a concrete function takes half as long as one that looks at its arguments
        self._read = read.get_concrete_function() if self.variables else list

    def taken(self) -> list[Any]:
        """Return the present values."""
        values: list[Any] = self._read()
        return values

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


def assign_pieces(variable: Any, pieces: Iterable[tuple[int, Any]]) -> None:
    """Give a variable its value out of pieces of its rows, each with the number of its first row.

    They go into a tensor that the variable then takes over. Overwriting rows of the variable itself would
    take even less, but from then on TensorFlow copies such a variable whenever it is read.
    """
    whole = None
    for start, rows in pieces:
        if rows.shape == tuple(variable.shape):
            whole = rows
        else:
            if whole is None:
                whole = tf.raw_ops.Empty(shape=variable.shape, dtype=variable.dtype)
            whole = tf.raw_ops.InplaceUpdate(x=whole, i=tf.range(start, start + len(rows)), v=rows)
    variable.assign(whole)


def moved_by_a_part(model: Any) -> list[Any]:
    """Return what a forward pass and its metrics move: seeds, statistics, counts."""
    return [*model.non_trainable_variables, *model.metrics_variables]


def moved_by_a_step(model: Any) -> list[Any]:
    """Return all that one whole update moves."""
    slots = model.optimizer.variables if model.optimizer is not None else []
    return [*model.variables, *model.metrics_variables, *slots]


def moved_by_the_loss(model: Any, *, own_loss: bool) -> list[Any]:
    """Return what is moved before the last gradient is there: seeds, statistics, and what losses count."""
    counted = model.metrics_variables if own_loss else _loss_trackers(model)
    return [*model.non_trainable_variables, *counted]


def _loss_trackers(model: Any) -> list[Any]:
    compiled = model._compile_loss  # noqa: SLF001
    layers = [layer for layer in model._flatten_layers(include_self=False) if layer.metrics]  # noqa: SLF001
    trackers = [] if compiled is None else compiled.metrics
    return [variable for metric in trackers for variable in metric.variables] + [
        variable for layer in layers for metric in layer.metrics for variable in metric.variables
    ]
