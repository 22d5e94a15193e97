"""Metrics of a batch that comes in parts."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager
from typing import Any

import tensorflow as tf

from anybatch.train.backends.tensorflow_terms import overrides


def update(model: Any, given: tuple[Any, ...], late: AbstractSet[int]) -> Any:
    """Update a model's metrics by one part, but those that have to see the whole batch.

    Return what a `compute_metrics` of its own returns.
    """
    x, y, y_pred, weights = given
    if overrides(model, "compute_metrics"):
        return model.compute_metrics(x, y, y_pred, sample_weight=weights)
    if model._compile_metrics is not None:  # noqa: SLF001
        with _without(model, late):
            model._compile_metrics.update_state(y, y_pred, weights)  # noqa: SLF001
    return None


def told(own_logs: Any, logs: Any) -> Any:
    """Return the logs of a batch: what a model's own `compute_metrics` tells, its metrics as they are now.

    The loss is counted behind the last part, so only what is no metric stays as it was told then.
    """
    return logs if own_logs is None else {name: logs.get(name, value) for name, value in own_logs.items()}


def update_late(model: Any, gathered: tuple[Any, Any, Any], late: AbstractSet[int]) -> None:
    """Update those that have to see the whole batch."""
    y, y_pred, weights = gathered
    everybody = {id(metric) for metric in model._compile_metrics.metrics}  # noqa: SLF001
    with _without(model, everybody - late):
        model._compile_metrics.update_state(y, y_pred, weights)  # noqa: SLF001


def metrics_outside(model: Any) -> list[Any]:
    """Return the metrics that are not compiled: a layer or a loss updates them by itself."""
    compiled_loss = model._compile_loss  # noqa: SLF001
    trackers = [] if compiled_loss is None else compiled_loss.metrics
    compiled = [model._loss_tracker, model._compile_metrics, *trackers]  # noqa: SLF001
    return [metric for metric in model.metrics if not any(metric is one for one in compiled)]


@contextmanager
def _without(model: Any, left_out: AbstractSet[int]) -> Iterator[None]:
    """Leave some metrics, by identity, out of what Keras updates."""
    compiled = model._compile_metrics  # noqa: SLF001
    lists = [*compiled._flat_metrics, *compiled._flat_weighted_metrics] if compiled.built else []  # noqa: SLF001
    with ExitStack() as stack:
        for one in lists:
            if one is not None:
                kept, one.metrics = one.metrics, [m for m in one.metrics if id(m) not in left_out]
                stack.callback(setattr, one, "metrics", kept)
        yield


def behind_each_other(parts: list[Any]) -> Any:
    """Return what several parts predicted, one behind the other."""
    if len(parts) == 1:
        return parts[0]
    return tf.nest.map_structure(lambda *leaves: None if leaves[0] is None else tf.concat(leaves, 0), *parts)
