"""How many bytes belong to a model, as Keras tells without running it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras.src import backend as keras_backend

from anybatch.train.backends.tensorflow_state import n_bytes
from anybatch.train.backends.tensorflow_terms import predictions
from anybatch.train.plan_uses import Sizes

_SAMPLES = 2
"""Shapes are asked for so many: of one, a layer might drop the dimension."""

_INDEX_BYTES = 8

_VIEWS = (keras.layers.InputLayer, keras.layers.Reshape, keras.layers.Flatten)
"""Layers whose output is the memory of their input."""

Call = tuple[Any, Any, Any]
"""A layer, what it was given first, and what it made of it."""


def sizes(model: Any, part: Any) -> Sizes:
    """Return the bytes of a model that is built, for samples like those of a part."""
    x, _, _ = keras.utils.unpack_x_y_sample_weight(part)
    calls = _calls(model, x)
    tables = {id(layer.embeddings) for layer in _embeddings(model)}
    dense = [variable for variable in model.trainable_variables if id(variable) not in tables]
    return Sizes(
        weights_bytes=_together(model.weights),
        slots_bytes=_slots_bytes(model),
        gradients_bytes=_together(dense),
        slices_bytes=_slices_bytes(model, calls),
        sample_bytes=_row_bytes(part),
        layers=tuple(_by_layer(calls).items()),
        full_precision=keras.backend.standardize_dtype(model.compute_dtype) in {"float32", "float64"},
    )


def sums_grow(model: Any) -> bool:
    """Return whether gradients are summed over parts by putting slices of them end to end."""
    return bool(_embeddings(model))


def variables_bytes(model: Any) -> int:
    """Return what weights and slots take, as far as they exist."""
    return _together(model.weights) + _slots_bytes(model)


def largest_variable_bytes(model: Any) -> int:
    """Return what the largest of weights takes; slots are as large."""
    return max(map(n_bytes, model.weights), default=0)


def _slots_bytes(model: Any) -> int:
    return 0 if model.optimizer is None else _together(model.optimizer.variables)


def _together(variables: Any) -> int:
    return sum(map(n_bytes, variables))


def _embeddings(model: Any) -> list[Any]:
    layers = model._flatten_layers()  # noqa: SLF001
    return [layer for layer in layers if isinstance(layer, keras.layers.Embedding) and layer.trainable]


def _slices_bytes(model: Any, calls: list[Call]) -> int:
    """Return what one sample adds to the gradients of tables: a row and its number for every index."""
    tables = set(map(id, _embeddings(model)))
    return sum(
        _sample_bytes(outputs) + _count(given) * _INDEX_BYTES
        for layer, given, outputs in calls
        if id(layer) in tables
    )


def _by_layer(calls: list[Call]) -> dict[str, int]:
    """Return the bytes per sample that layers put out, those inside of others under their own names."""
    found: dict[str, int] = {}
    for layer, given, outputs in calls:
        if isinstance(layer, _VIEWS) or not _is_counted(layer):
            continue
        steps = _recurrent_bytes(layer, given) if isinstance(layer, keras.layers.RNN) else 0
        found[layer.name] = found.get(layer.name, 0) + _sample_bytes(outputs) + steps
    return {name: n for name, n in found.items() if n}


def _is_counted(layer: Any) -> bool:
    """Return whether nothing inside of a layer is counted instead; steps of a recurrent one are not seen."""
    inside = layer._flatten_layers(include_self=False, recursive=False)  # noqa: SLF001
    return isinstance(layer, keras.layers.RNN) or not list(inside)


def _recurrent_bytes(layer: Any, given: Any) -> int:
    """Return what all steps keep for the backward pass: gates and states, one sample's."""
    sequence = keras.tree.flatten(given)[0]
    gates = getattr(layer.cell, "recurrent_kernel", None)
    states = sum(int(np.prod(one)) for one in keras.tree.flatten(layer.cell.state_size))
    width = states + (0 if gates is None else int(gates.shape[-1]))
    return int(sequence.shape[1] or 1) * width * _itemsize(layer.compute_dtype)


# by symbolic shapes


def _calls(model: Any, x: Any) -> list[Call]:
    """Return the calls of all layers in one forward pass, which is traced and not run.

    What cannot be traced so has no rows of its own: they are for people to read, no plan rests on them.
    """
    # a model of the user's own can fail on symbols in any way it likes
    with suppress(Exception), _watched() as seen:
        inputs = keras.tree.map_structure(_symbolic, x)
        keras_backend.compute_output_spec(lambda given: predictions(model, given, training=True), inputs)
    cells = _cells([layer for layer, _, _ in seen])
    return [call for call in seen if id(call[0]) not in cells]


def _cells(layers: list[Any]) -> set[int]:
    """Return what is inside of recurrent layers: it is traced once for all steps."""
    recurrent = [layer for layer in layers if isinstance(layer, keras.layers.RNN)]
    return {id(one) for layer in recurrent for one in layer._flatten_layers(include_self=False)}  # noqa: SLF001


def _symbolic(leaf: Any) -> Any:
    return None if leaf is None else keras.KerasTensor((_SAMPLES, *leaf.shape[1:]), _dtype(leaf))


@contextmanager
def _watched() -> Iterator[list[Call]]:
    """See every call of a layer inside the `with` block."""
    seen: list[Call] = []
    original = keras.layers.Layer.__call__

    def watching(layer: Any, *args: Any, **options: Any) -> Any:
        outputs = original(layer, *args, **options)
        seen.append((layer, args[0] if args else None, outputs))
        return outputs

    keras.layers.Layer.__call__ = watching
    try:
        yield seen
    finally:
        keras.layers.Layer.__call__ = original


def _count(structure: Any) -> int:
    """Return how many values one sample has in a structure of symbolic tensors."""
    return sum(_elements(leaf) for leaf in _leaves(structure)) // _SAMPLES


def _sample_bytes(structure: Any) -> int:
    return sum(_elements(leaf) * _itemsize(leaf.dtype) for leaf in _leaves(structure)) // _SAMPLES


def _row_bytes(columns: Any) -> int:
    """Return the bytes of one row of columns that are there."""
    return sum(int(np.prod(leaf.shape[1:])) * _itemsize(leaf.dtype) for leaf in _leaves(columns))


def _leaves(structure: Any) -> list[Any]:
    return [leaf for leaf in keras.tree.flatten(structure) if hasattr(leaf, "shape")]


def _elements(leaf: Any) -> int:
    return int(np.prod([length or 1 for length in leaf.shape]))


def _dtype(leaf: Any) -> str:
    return str(keras.backend.standardize_dtype(leaf.dtype))


def _itemsize(dtype: Any) -> int:
    return int(tf.as_dtype(keras.backend.standardize_dtype(dtype)).size)
