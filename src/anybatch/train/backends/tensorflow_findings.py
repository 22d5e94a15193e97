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
from anybatch.train.backends.tensorflow_state import Undo, moved_by_a_part
from anybatch.train.backends.tensorflow_terms import (
    COUNT,
    ONE,
    OWN,
    Term,
    overrides,
    penalties,
    predictions,
    terms_of,
)
from anybatch.train.refusals import CannotSplit

FEW = 6
"""Rows that a test looks at: enough for two unequal parts, and little memory."""

REMAT = "`keras.remat` around its layers keeps the batch whole in less memory"
_DRAWS = "draws other numbers when a batch is split: equal in distribution, not in bits"
_SUM_OF_PENALTY = "one without penalty"


@dataclass(slots=True)
class Findings:
    """How the terms of the loss add up, which metrics need whole batches, and what stays inexact."""

    rules: dict[str, str] = field(default_factory=dict)
    late: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    exact: bool = True

    def inexact(self, note: str) -> None:
        """Note something that makes the update another one than that of the whole batch."""
        self.exact = False
        self.notes.append(note)


def examined(model: Any, batch: Any) -> Findings:
    """Return what can be said of a model by its layers and by a few rows of a batch; nothing stays moved."""
    if overrides(model, "train_step"):
        raise CannotSplit(
            f"{type(model).__name__}.train_step",
            "it is the model's own, and what it does with a batch cannot be seen from outside",
            "whole batches run as they are; override compute_loss instead, or use anybatch.gradients in it",
        )
    findings = Findings()
    _by_type(model, findings)
    undo = Undo(moved_by_a_part(model))
    before = undo.taken()
    try:
        with one_draw_for_all_rows():
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


@dataclass(frozen=True, slots=True)
class _Trial:
    """What a model makes of some rows in training mode."""

    given: Any
    rows: int
    outputs: Any
    terms: list[Term]
    values: list[Any]

    def alpha(self, term: Term) -> Any:
        return self.rows if term.measure is None else self.rows * float(term.measure)


def _by_trial(model: Any, batch: Any, findings: Findings, undo: Undo) -> None:
    rows = row_count(batch)
    if rows < 2:
        return
    cut = rows - rows // 2 if rows > 2 else 1
    before = undo.taken()
    halves = [rows_between(batch, 0, cut), rows_between(batch, cut, rows)]
    together, *apart = [_trial(model, part, undo, before) for part in (batch, *halves)]
    mixed = _mixing(model, together, apart, findings)
    for number in range(len(together.terms)):
        if not _classified(model, number, together, apart, findings) and not mixed:
            findings.inexact(
                f"`{together.terms[number].name}` is neither a sum nor a mean over samples: it compares "
                f"them; {REMAT}"
            )
    _metrics(model, [together], apart, findings)
    _moving(model, undo, before, findings)
    undo.put_back(before)


def _trial(model: Any, part: Any, undo: Undo, before: list[Any]) -> _Trial:
    undo.put_back(before)
    x, y, weights = keras.utils.unpack_x_y_sample_weight(part)
    y_pred = predictions(model, x, training=True)
    terms = terms_of(model, (x, y, y_pred, weights), {}, training=True)
    return _Trial(
        part, row_count(part), y_pred, terms, [np.asarray(term.objective, np.float64) for term in terms]
    )


def _mixing(model: Any, together: _Trial, apart: list[_Trial], findings: Findings) -> bool:
    """Return whether rows depend on each other before any loss sees them, and say so if nobody has."""
    if norms.pooled_layers(model):
        return True
    for number, leaf in enumerate(tf.nest.flatten(together.outputs)):
        halves = [tf.nest.flatten(trial.outputs)[number] for trial in apart]
        if not _is_by_row(leaf, together.rows):
            continue
        if not _close(np.concatenate([np.asarray(half) for half in halves]), np.asarray(leaf)):
            findings.inexact(
                f"output {number} of `{model.name}` depends on the other samples of its batch: a layer mixes "
                f"them; {REMAT}"
            )
            return True
    return False


def _is_by_row(leaf: Any, rows: int) -> bool:
    return bool(leaf.shape.rank) and leaf.shape[0] == rows and leaf.dtype.is_floating


def _classified(model: Any, number: int, together: _Trial, apart: list[_Trial], findings: Findings) -> bool:
    """Find the rule by which a term adds up, and return whether there is one."""
    term, value = together.terms[number], together.values[number]
    parts = [trial.values[number] for trial in apart]
    if _adds_up(term, number, together, apart, term.rule):
        if term.tested:
            findings.rules[term.name] = COUNT
    elif term.tested and _adds_up(term, number, together, apart, ONE):
        findings.rules[term.name] = ONE
    elif term.name == "compute_loss" and _close(sum(parts) - _penalty(model), value):
        findings.rules[term.name] = _SUM_OF_PENALTY
    else:
        return False
    return True


def _adds_up(term: Term, number: int, together: _Trial, apart: list[_Trial], rule: str) -> bool:
    values = np.array([trial.values[number] for trial in apart])
    if rule == ONE:
        return _close(values.sum(), together.values[number])
    alphas = np.array([trial.alpha(trial.terms[number]) for trial in apart])
    whole = together.alpha(together.terms[number]) if rule == OWN else together.rows
    return whole == 0 or _close((alphas * values).sum() / whole, together.values[number])


def _penalty(model: Any) -> Any:
    return sum(np.asarray(one, np.float64) for one in penalties(model))


def _close(one: Any, other: Any) -> bool:
    """Return whether two results agree but for rounding; twice undefined is agreement."""
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    scale = np.nanmax(np.abs(other), initial=0.0) + 1e-6
    return bool(np.allclose(one, other, rtol=2e-3, atol=2e-3 * scale, equal_nan=True))


def _metrics(model: Any, together: list[_Trial], apart: list[_Trial], findings: Findings) -> None:
    """Find the metrics that come out otherwise when they are updated part by part."""
    compiled = model._compile_metrics  # noqa: SLF001
    if overrides(model, "compute_metrics"):
        findings.notes.append("compute_metrics is the model's own and is called once per part")
        return
    if compiled is None:
        return
    at_once, one_by_one = _after(compiled, together), _after(compiled, apart)
    for metric, one, other in zip(compiled.metrics, at_once, one_by_one, strict=True):
        if not all(map(_close, one, other)):
            findings.late.add(id(metric))
            findings.notes.append(
                f"metric `{metric.name}` does not add up over parts: it sees the predictions of whole batches"
            )


def _after(compiled: Any, trials: list[_Trial]) -> list[list[Any]]:
    compiled.reset_state()
    for trial in trials:
        _, y, weights = keras.utils.unpack_x_y_sample_weight(trial.given)
        compiled.update_state(y, trial.outputs, weights)
    return [
        [np.asarray(variable.value, np.float64) for variable in metric.variables]
        for metric in compiled.metrics
    ]


def _moving(model: Any, undo: Undo, before: list[Any], findings: Findings) -> None:
    """Find state that a training pass moves and that nobody pools: it moves once per part, or is a seed."""
    pooled = {id(v) for layer in norms.pooled_layers(model) for v in layer.non_trainable_variables}
    metrics = {id(variable) for variable in model.metrics_variables}
    for variable, value in zip(undo.variables, before, strict=True):
        if id(variable) in pooled | metrics or np.array_equal(variable.numpy(), np.asarray(value)):
            continue
        if "seed" not in variable.name:
            findings.inexact(
                f"`{variable.path}` is moved by the forward pass: once per part instead of once; {REMAT}"
            )
        elif not any(_DRAWS in note for note in findings.notes):
            findings.inexact(f"`{variable.path}` {_DRAWS}")


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
