"""What can be split exactly and what cannot: found by type, and by trying it on a few samples."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras.src import backend as keras_backend

from anybatch.train.backends import tensorflow_norms as norms
from anybatch.train.backends.tensorflow_feed import row_count, rows_between, tensors
from anybatch.train.backends.tensorflow_metrics import metrics_outside
from anybatch.train.backends.tensorflow_sizes import sums_grow
from anybatch.train.backends.tensorflow_state import Undo, moved_by_a_part
from anybatch.train.backends.tensorflow_summands import check_shapes, objectives_of
from anybatch.train.backends.tensorflow_terms import overrides, predictions, terms_of
from anybatch.train.backends.tensorflow_trials import (
    Trial,
    Trials,
    close,
    judged,
    later_trials,
    trials_of,
    tried,
)
from anybatch.train.refusals import tried_on_few_rows

FEW = 6
"""Rows that a test looks at: enough for two unequal parts, and little memory."""

REMAT = "`keras.remat` around its layers keeps the batch whole in less memory"
_DRAWS = "draws other numbers when a batch is split: equal in distribution, not in bits"


@dataclass(slots=True)
class Findings:
    """How the terms of the loss add up, which metrics need whole batches, and what stays inexact."""

    rules: dict[str, str] = field(default_factory=dict)
    late: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    exact: bool = True
    moving: set[int] = field(default_factory=set)
    """Variables that the forward pass moves and nobody pools."""
    of_first: set[int] = field(default_factory=set)
    """Metrics that do not add up over workers, and of which the first one's are shown."""

    def inexact(self, note: str) -> None:
        """Note something that makes the update another one than that of the whole batch."""
        self.exact = False
        self.notes.append(note)


def examined(model: Any, batch: Any) -> Findings:
    """Return what can be said of a model by its layers and by a few rows of a batch; nothing stays moved."""
    findings = Findings()
    _by_type(model, findings)
    undo = Undo(moved_by_a_part(model))
    before = undo.taken()
    try:
        with tried_on_few_rows(model), one_draw_for_all_rows():
            _by_trial(model, _few(batch), findings, undo)
    finally:
        undo.put_back(before)
    return findings


def _few(batch: Any) -> Any:
    return tensors(rows_between(batch, 0, min(FEW, row_count(batch))))


# by type


def _by_type(model: Any, findings: Findings) -> None:
    pooled = norms.pooled_layers(model)
    for layer in model._flatten_layers():  # noqa: SLF001
        if layer in pooled:
            findings.inexact(
                f"BatchNormalization `{layer.name}` normalises by part; its moving statistics are "
                f"those of the whole batch; {REMAT}"
            )
        elif isinstance(layer, keras.layers.SpectralNormalization):
            findings.inexact(f"SpectralNormalization `{layer.name}` iterates once per part; {REMAT}")
        elif getattr(layer, "stateful", False):
            findings.inexact(
                f"`{layer.name}` is stateful: parts follow each other where rows should; {REMAT}"
            )
        elif isinstance(layer, _RANDOM) and _draws(layer):
            findings.inexact(f"{type(layer).__name__} `{layer.name}` {_DRAWS}")


_RANDOM = (
    keras.layers.Dropout,
    keras.layers.SpatialDropout1D,
    keras.layers.SpatialDropout2D,
    keras.layers.SpatialDropout3D,
    keras.layers.GaussianDropout,
    keras.layers.GaussianNoise,
    keras.layers.AlphaDropout,
)


def _draws(layer: Any) -> bool:
    return bool(getattr(layer, "rate", None) or getattr(layer, "stddev", None))


# by trial


def _by_trial(model: Any, batch: Any, findings: Findings, undo: Undo) -> None:
    if row_count(batch) < 2:
        findings.inexact("nothing could be tried: there was one row to try it on")
        return
    before = undo.taken()
    trials = trials_of(model, batch, undo, before)
    check_shapes(trials.together.terms)
    mixed = _mixing(model, trials, findings)
    of_later = later_trials(model, batch, undo, before)
    for name, verdict in judged(model, trials, of_later, mixed=mixed):
        if verdict.rule:
            findings.rules[name] = verdict.rule
        if verdict.objection:
            findings.inexact(f"{verdict.objection}; {REMAT}")
    _metrics(model, trials, findings)
    _moving(model, undo, before, findings)
    _own_metrics(model, trials, undo, before, findings)
    if sums_grow(model):
        _lookups(model, batch, findings)
    undo.put_back(before)


def _mixing(model: Any, trials: Trials, findings: Findings) -> bool:
    """Return whether rows depend on each other before any loss sees them, and say so if nobody has."""
    if norms.pooled_layers(model):
        return True
    for number, leaf in enumerate(tf.nest.flatten(trials.together.outputs)):
        halves = [tf.nest.flatten(trial.outputs)[number] for trial in trials.apart]
        if not _is_by_row(leaf, trials.together.rows):
            continue
        if not np.isfinite(leaf).any():
            findings.inexact(
                f"output {number} of `{model.name}` is undefined for the first rows, together and apart: "
                "whether a layer mixes samples cannot be told; look for NaN and infinity in them"
            )
        elif not close(np.concatenate([np.asarray(half) for half in halves]), np.asarray(leaf)):
            findings.inexact(
                f"output {number} of `{model.name}` depends on the other samples of its batch: a layer mixes "
                f"them; {REMAT}"
            )
            return True
    return False


def _is_by_row(leaf: Any, rows: int) -> bool:
    return bool(leaf.shape.rank) and leaf.shape[0] == rows and leaf.dtype.is_floating


def _metrics(model: Any, trials: Trials, findings: Findings) -> None:
    """Find the metrics that come out otherwise when they are updated part by part."""
    compiled = model._compile_metrics  # noqa: SLF001
    if overrides(model, "compute_metrics"):
        findings.notes.append(
            "compute_metrics is the model's own and is called once per part, before the loss is counted"
        )
        return
    if compiled is None:
        return
    at_once, one_by_one = _after(compiled, [trials.together]), _after(compiled, trials.apart)
    for metric, one, other in zip(compiled.metrics, at_once, one_by_one, strict=True):
        if not all(map(close, one, other)):
            findings.late.add(id(metric))
            findings.notes.append(
                f"metric `{metric.name}` does not add up over parts: it sees the predictions of whole batches"
            )


def _own_metrics(model: Any, trials: Trials, undo: Undo, before: list[Any], findings: Findings) -> None:
    """Find metrics that a layer or a loss updates by itself and that come out otherwise part by part."""
    own = metrics_outside(model)
    if not own:
        return
    counted = {id(variable) for metric in own for variable in metric.variables}
    others = Undo([variable for variable in undo.variables if id(variable) not in counted])

    def after(several: list[Trial]) -> list[list[Any]]:
        undo.put_back(before)
        start = others.taken()
        for metric in own:
            metric.reset_state()
        for trial in several:
            tried(model, trial.given, others, start)
        return _states(own)

    for metric, one, other in zip(own, after([trials.together]), after(trials.apart), strict=True):
        if not all(map(close, one, other)):
            findings.notes.append(
                f"metric `{metric.name}` is updated by a layer or a loss, once per part: "
                "its value may differ from that of whole batches"
            )


def _after(compiled: Any, trials: list[Trial]) -> list[list[Any]]:
    compiled.reset_state()
    for trial in trials:
        _, y, weights = keras.utils.unpack_x_y_sample_weight(trial.given)
        compiled.update_state(y, trial.outputs, weights)
    return _states(compiled.metrics)


def _states(metrics: list[Any]) -> list[list[Any]]:
    return [[np.asarray(variable.value, np.float64) for variable in one.variables] for one in metrics]


def _moving(model: Any, undo: Undo, before: list[Any], findings: Findings) -> None:
    """Find state that a training pass moves and that nobody pools: it moves once per part, or is a seed."""
    pooled = {id(v) for layer in norms.pooled_layers(model) for v in layer.non_trainable_variables}
    metrics = {id(variable) for variable in model.metrics_variables}
    for variable, value in zip(undo.variables, before, strict=True):
        if id(variable) in pooled | metrics or np.array_equal(variable.numpy(), np.asarray(value)):
            continue
        if "seed" not in variable.name:
            findings.moving.add(id(variable))
            findings.inexact(
                f"`{variable.path}` is moved by the forward pass: once per part instead of once; {REMAT}"
            )
        elif not any(_DRAWS in note for note in findings.notes):
            findings.inexact(f"`{variable.path}` {_DRAWS}")


def _lookups(model: Any, batch: Any, findings: Findings) -> None:
    """Find rows of embeddings that several groups of terms share in part: they cannot be told apart later."""
    x, y, weights = keras.utils.unpack_x_y_sample_weight(batch)
    with tf.GradientTape(persistent=True) as tape:
        y_pred = predictions(model, x, training=True)
        terms = terms_of(model, (x, y, y_pred, weights), findings.rules, training=True)
        objectives = list(objectives_of(terms, tf.constant(1.0, tf.float64)).values())
        whole = sum(objectives[1:], objectives[0]) if objectives else None
    if len(objectives) < 2:
        return
    variables = [variable.value for variable in model.trainable_variables]
    found = [tape.gradient(one, variables) for one in (whole, *objectives)]
    for variable, (together, *apart) in zip(model.trainable_variables, zip(*found, strict=True), strict=True):
        counts = [_slices(one) for one in apart if one is not None]
        same = all(count == _slices(together) for count in counts)
        if not same and sum(counts) != _slices(together):
            findings.inexact(
                f"rows of `{variable.path}` are looked up for losses that are divided apart, some for one, "
                f"some for all of them: an optimizer that squares sees them apart; {REMAT}"
            )


def _slices(gradient: Any) -> int:
    return int(gradient.indices.shape[0]) if isinstance(gradient, tf.IndexedSlices) else 0


@contextmanager
def one_draw_for_all_rows() -> Iterator[None]:
    """Let every random draw be that of one row, the same for all: then parts draw what the whole draws.

    Only so can a model with dropout, or one that samples, be tested for what else depends on the batch.
    """
    random = keras_backend.random
    names = [
        name
        for name in ("normal", "uniform", "truncated_normal", "randint", "gamma", "beta")
        if hasattr(random, name)
    ]
    kept = {name: getattr(random, name) for name in [*names, "dropout"]}
    try:
        for name in names:
            setattr(random, name, _by_row(kept[name]))
        random.dropout = _dropout_by_row(kept["dropout"])
        yield
    finally:
        for name, draw in kept.items():
            setattr(random, name, draw)


def _by_row(draw: Callable[..., Any]) -> Callable[..., Any]:
    def drawn(shape: Any, *args: Any, **options: Any) -> Any:
        if not len(shape):
            return draw(shape, *args, **options)
        row = draw((1, *shape[1:]), *args, **options)
        return tf.repeat(row, shape[0], axis=0)

    return drawn


def _dropout_by_row(draw: Callable[..., Any]) -> Callable[..., Any]:
    def dropped(inputs: Any, rate: float, noise_shape: Any = None, seed: Any = None) -> Any:
        shape = inputs.shape if noise_shape is None else noise_shape
        return draw(inputs, rate, noise_shape=(1, *shape[1:]), seed=seed)

    return dropped
