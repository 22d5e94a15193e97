"""What several workers have to know of a model besides what one process does: what adds up over them."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from anybatch.train.backends import tensorflow_metrics as metrics
from anybatch.train.backends.tensorflow_feed import row_count, rows_between, tensors
from anybatch.train.backends.tensorflow_findings import Findings, examined
from anybatch.train.backends.tensorflow_state import Undo, moved_by_a_part
from anybatch.train.backends.tensorflow_terms import overrides, predictions
from anybatch.train.backends.tensorflow_trials import tried
from anybatch.train.workers import Workers


def shared_findings(model: Any, sample: Any, workers: Workers) -> Findings:
    """Return what can be split exactly, and what becomes of metrics and state that do not add up.

    All workers come to the same: what one of them has found, none adds up.
    """
    found = examined(model, sample)
    part = tensors(sample)
    for metric in _not_adding_up(model, part):
        if id(metric) not in found.late:
            found.late.add(id(metric))
            found.notes.append(
                f"metric `{metric.name}` does not add up over workers: each sees all predictions"
            )
    for metric in _own_not_adding_up(model, part):
        found.of_first.add(id(metric))
        found.notes.append(
            f"metric `{metric.name}` is updated by the model itself and does not add up over workers: "
            "it shows what worker 0 has seen"
        )
    for layer in model._flatten_layers():  # noqa: SLF001
        if isinstance(layer, keras.layers.SpectralNormalization):
            # its kernel is trained, and divided in every forward pass besides
            found.moving.add(id(layer.kernel))
    return _agreed(model, found, workers)


def _agreed(model: Any, found: Findings, workers: Workers) -> Findings:
    """Let every worker treat as special what any of them does: all have to send the same."""
    asked = [(found.late, _compiled(model)), (found.of_first, _own(model)), (found.moving, model.variables)]
    flags = [tf.constant([int(id(one) in marked) for one in every], tf.int64) for marked, every in asked]
    for (marked, every), votes in zip(asked, workers.all_sum(flags), strict=True):
        marked.update(id(one) for one, vote in zip(every, np.asarray(votes), strict=True) if vote)
    return found


def _compiled(model: Any) -> list[Any]:
    """Return the metrics that can be updated when all predictions are there."""
    compiled = model._compile_metrics  # noqa: SLF001
    return [] if compiled is None or overrides(model, "compute_metrics") else list(compiled.metrics)


def _own(model: Any) -> list[Any]:
    """Return the metrics that the model updates by itself, wherever it does."""
    compiled = model._compile_metrics  # noqa: SLF001
    own = [] if compiled is None or not overrides(model, "compute_metrics") else list(compiled.metrics)
    return [*own, *metrics.metrics_outside(model)]


def _not_adding_up(model: Any, sample: Any) -> Iterator[Any]:
    """Yield the compiled metrics whose state after two parts is not the sum of the states after each."""
    compiled = _compiled(model)
    undo = Undo(moved_by_a_part(model))
    before = undo.taken()

    def state(parts: list[Any]) -> list[list[Any]]:
        model._compile_metrics.reset_state()  # noqa: SLF001
        for part in parts:
            x, y, weights = keras.utils.unpack_x_y_sample_weight(part)
            y_pred = predictions(model, x, training=False)
            model._compile_metrics.update_state(y, y_pred, weights)  # noqa: SLF001
        return _values(compiled)

    if compiled and row_count(sample) > 1:
        yield from _differing(compiled, *[state(parts) for parts in _halved(sample)])
    undo.put_back(before)


def _own_not_adding_up(model: Any, sample: Any) -> Iterator[Any]:
    """Yield the metrics of the model's own of which the same is true."""
    own = _own(model)
    undo = Undo(moved_by_a_part(model))
    before = undo.taken()
    counted = {id(variable) for metric in own for variable in metric.variables}
    others = Undo([variable for variable in undo.variables if id(variable) not in counted])
    start = others.taken()

    def state(parts: list[Any]) -> list[list[Any]]:
        for metric in own:
            metric.reset_state()
        for part in parts:
            # from the same seeds each time, or every part would draw other numbers
            trial = tried(model, part, others, start)
            if overrides(model, "compute_metrics"):
                x, y, weights = keras.utils.unpack_x_y_sample_weight(part)
                model.compute_metrics(x, y, trial.outputs, sample_weight=weights)
        return _values(own)

    if own and row_count(sample) > 1:
        yield from _differing(own, *[state(parts) for parts in _halved(sample)])
    undo.put_back(before)


def _halved(sample: Any) -> list[list[Any]]:
    """Return nothing, one half, the other, and both."""
    rows = row_count(sample)
    halves = [rows_between(sample, 0, rows // 2), rows_between(sample, rows // 2, rows)]
    return [[], halves[:1], halves[1:], halves]


def _values(several: list[Any]) -> list[list[Any]]:
    return [[np.asarray(one.value, np.float64) for one in metric.variables] for metric in several]


def _differing(several: list[Any], none: Any, one: Any, other: Any, both: Any) -> Iterator[Any]:
    for at, metric in enumerate(several):
        apart = [a + b - c for a, b, c in zip(one[at], other[at], none[at], strict=True)]
        if not all(np.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(apart, both[at], strict=True)):
            yield metric
