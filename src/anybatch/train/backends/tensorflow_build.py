"""Every variable of a model, there before its first step."""

from typing import Any

import keras
from keras.src import backend as keras_backend

from anybatch.train.backends.tensorflow_feed import row_count, rows_between, tensors
from anybatch.train.backends.tensorflow_state import Undo, moved_by_a_part
from anybatch.train.backends.tensorflow_terms import predictions
from anybatch.train.exhaustion import is_exhaustion
from anybatch.train.refusals import tried_on_few_rows

_FEW = 2


def build(model: Any, part: Any, rows: int | None = None) -> None:
    """Create every variable, so that there is something to put back when the first step fails.

    By shapes alone where that is possible, those of a batch of `rows` rows, or else as many as the part has:
    a layer may keep a state for each. `CannotTry` where a model does not take that; Keras itself leaves
    building to the first step.
    """
    x, y, _ = keras.utils.unpack_x_y_sample_weight(part)
    with tried_on_few_rows(model):
        if type(model).call is keras.Model.call:
            # Keras would take it for built, with two warnings
            raise NotImplementedError(f"{type(model).__name__} has no call")
        if y is None and (not model.compiled or model._compile_loss is not None):  # noqa: SLF001
            # nothing but predictions can be wanted, and the loss could not be built without labels
            if not model.built:
                _by_shapes(model, _symbolic(x, rows))
        elif model.run_eagerly and not _is_built(model):
            _by_a_call(model, part, rows)
        else:
            model._symbolic_build(data_batch=_symbolic(part, rows))  # noqa: SLF001


def _symbolic(columns: Any, rows: int | None) -> Any:
    """Return the same structure with tensors that have a shape and a type only."""
    count = rows or row_count(columns)
    few = tensors(rows_between(columns, 0, min(_FEW, row_count(columns))))
    return keras.tree.map_structure(lambda leaf: _of_shape(leaf, count), few)


def _of_shape(leaf: Any, rows: int) -> Any:
    if leaf is None:
        return None
    return keras.KerasTensor((rows, *leaf.shape[1:]), keras.backend.standardize_dtype(leaf.dtype))


def _by_shapes(model: Any, x: Any) -> None:
    keras_backend.compute_output_spec(lambda given: predictions(model, given, training=False), x)


def _is_built(model: Any) -> bool:
    compiled = model._compile_loss, model._compile_metrics  # noqa: SLF001
    return not any(map(_is_missing, (*compiled, *model._flatten_layers())))  # noqa: SLF001


def _by_a_call(model: Any, part: Any, rows: int | None) -> None:
    """Build a model that is to run eagerly, and may look at numbers: run it, and put back what that moved."""
    if any(map(_is_missing, model._flatten_layers())):  # noqa: SLF001
        # layers by shapes or not at all: what they keep has to be there before the call, to be put back
        _by_shapes(model, _symbolic(keras.utils.unpack_x_y_sample_weight(part)[0], rows))
    undo = Undo(moved_by_a_part(model))
    before = undo.taken()
    try:
        _call(model, part)
    finally:
        undo.put_back(before)
        known = set(map(id, undo.variables))
        for metric in model.metrics:
            if not known.issuperset(map(id, metric.variables)):
                metric.reset_state()
    if model.optimizer is not None and not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)


def _call(model: Any, part: Any) -> None:
    """Run a model, its metrics and its loss on few rows; on all of them if it does not take few."""
    try:
        _called(model, tensors(rows_between(part, 0, min(_FEW, row_count(part)))))
    except Exception as error:
        if is_exhaustion(error) or row_count(part) <= _FEW:
            raise
        _called(model, tensors(part))


def _called(model: Any, part: Any) -> None:
    x, y, weights = keras.utils.unpack_x_y_sample_weight(part)
    y_pred = predictions(model, x, training=False)
    if _is_missing(model._compile_metrics):  # noqa: SLF001
        model.compute_metrics(x, y, y_pred, sample_weight=weights)
    if _is_missing(model._compile_loss):  # noqa: SLF001
        model._compute_loss(x, y, y_pred, sample_weight=weights, training=False)  # noqa: SLF001


def _is_missing(one: Any) -> bool:
    return one is not None and not one.built
