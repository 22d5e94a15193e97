"""By which rule a term of the loss adds up over parts: a few rows are tried together and in two parts."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras.src import backend as keras_backend

from anybatch.train.backends.tensorflow_feed import row_count, rows_between
from anybatch.train.backends.tensorflow_later import later
from anybatch.train.backends.tensorflow_state import Undo
from anybatch.train.backends.tensorflow_terms import (
    COUNT,
    ONE,
    OWN,
    WITHOUT_PENALTY,
    Term,
    compiled_terms,
    overrides,
    penalties,
    predictions,
    terms_of,
)
from anybatch.train.exhaustion import is_exhaustion

ROUGH, FINE = 2e-3, 1e-4
"""How far results may be apart, relative to their size: of a model that may compute in 16 bits, and of losses
whose predictions are the same numbers of 32 bits."""

_FLOOR = 1e-6
_COMPARES = "it compares them"
_IN_WORDS = {COUNT: "a mean", ONE: "a sum", WITHOUT_PENALTY: "a sum"}


@dataclass(frozen=True, slots=True)
class Trial:
    """What a model makes of some rows in training mode."""

    given: Any
    rows: int
    outputs: Any
    terms: list[Term]
    values: list[Any]

    def alpha(self, number: int) -> Any:
        """Return what the value of a term is multiplied by before it is added to those of other parts."""
        measure = self.terms[number].measure
        return self.rows if measure is None else self.rows * float(measure)


@dataclass(frozen=True, slots=True)
class Trials:
    """The same rows together, and in two parts."""

    together: Trial
    apart: list[Trial]
    tolerance: float = ROUGH
    meaning: str = _COMPARES
    """Why a term would not add up, if it does not."""

    def adds_up(self, number: int, rule: str, penalty: float = 0.0) -> bool:
        """Return whether the parts' values of a term make that of all rows by some rule."""
        return close(self._sum_by(number, rule, penalty), self.together.values[number], self.tolerance)

    def nearest(self, number: int, rules: list[str], penalty: float) -> str:
        """Return the rule by which the parts come nearest to all rows."""
        value = self.together.values[number]
        return min(rules, key=lambda rule: abs(self._sum_by(number, rule, penalty) - value))

    def tell_nothing(self, number: int) -> bool:
        """Return whether a term is zero everywhere, or undefined: then it adds up by any rule."""
        values = np.array([trial.values[number] for trial in (self.together, *self.apart)])
        return not (np.isfinite(values).all() and (np.abs(values) > _FLOOR).any())

    def _sum_by(self, number: int, rule: str, penalty: float) -> Any:
        values = np.array([trial.values[number] for trial in self.apart])
        if rule == ONE:
            return values.sum()
        if rule == WITHOUT_PENALTY:
            return values.sum() - (len(values) - 1) * penalty
        alphas = np.array([trial.alpha(number) for trial in self.apart])
        whole = self.together.alpha(number) if rule == OWN else self.together.rows
        # nothing counts: whatever the value is, it is not divided
        return (alphas * values).sum() / whole if whole else self.together.values[number]


def trials_of(model: Any, batch: Any, undo: Undo, before: list[Any], meaning: str = _COMPARES) -> Trials:
    """Return what a model makes of rows together and in two parts of them, as unequal as may be."""
    parts = [(0, row_count(batch)), *_halves(row_count(batch))]
    together, *apart = [tried(model, rows_between(batch, *part), undo, before) for part in parts]
    return Trials(together, apart, meaning=meaning)


def later_trials(model: Any, batch: Any, undo: Undo, before: list[Any]) -> list[Trials]:
    """Return what a loss of the model's own makes of rows as later batches may have them."""
    if not overrides(model, "compute_loss"):
        return []
    found = [
        _unless_refused(partial(trials_of, model, given, undo, before, why)) for given, why in later(batch)
    ]
    return [trials for trials in found if trials is not None]


def _halves(rows: int) -> list[tuple[int, int]]:
    cut = rows - rows // 2
    return [(0, cut), (cut, rows)]


def tried(model: Any, part: Any, undo: Undo, before: list[Any]) -> Trial:
    """Return what a model makes of some rows, when it starts from a known state."""
    undo.put_back(before)
    x, y, weights = keras.utils.unpack_x_y_sample_weight(part)
    y_pred = predictions(model, x, training=True)
    terms = terms_of(model, (x, y, y_pred, weights), {}, training=True)
    return Trial(part, row_count(part), y_pred, terms, [_number(term.objective) for term in terms])


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a term adds up, if a rule has to be remembered for it, and what stands against it."""

    rule: str | None = None
    objection: str = ""


def judged(
    model: Any, trials: Trials, of_later: list[Trials], *, mixed: bool
) -> Iterator[tuple[str, Verdict]]:
    """Yield every term's name and how it adds up. `mixed`: rows depend on each other before the loss."""
    alone = _losses_alone(model, trials.together)
    for number, term in enumerate(trials.together.terms):
        if not term.tested:
            fine = mixed or trials.adds_up(number, term.rule)
            yield term.name, Verdict(objection="" if fine else _objection(term.name, trials))
        elif term.compiled:
            yield term.name, _of_compiled(term.name, number, alone)
        else:
            yield term.name, _of_model(model, term.name, number, [trials, *of_later], mixed=mixed)


def _of_compiled(name: str, number: int, alone: list[Trials]) -> Verdict:
    """Judge a loss function that returns one number, by predictions of which every row stands for itself."""
    telling = [trials for trials in alone if not trials.tell_nothing(number)]
    if not telling:
        return _untold(name)
    fitting = [COUNT, ONE]
    for trials in telling:
        fitting = [rule for rule in fitting if trials.adds_up(number, rule)]
        if not fitting:
            return Verdict(COUNT, _objection(name, trials))
    return Verdict(fitting[0])


def _of_model(model: Any, name: str, number: int, several: list[Trials], *, mixed: bool) -> Verdict:
    """Judge what only the model itself can compute, by rows as they are and as they may be later."""
    trials, *of_later = several
    if trials.tell_nothing(number):
        return _untold(name)
    penalty = float(sum(_number(one) for one in penalties(model))) if name == "compute_loss" else 0.0
    rules = [COUNT, ONE, *([WITHOUT_PENALTY] if penalty else [])]
    # a small penalty is within every tolerance: the nearest rule is the right one
    rule = trials.nearest(number, rules, penalty)
    if mixed and not trials.adds_up(number, rule, penalty):
        return Verdict(
            rule, f"`{name}` is taken for {_IN_WORDS[rule]} over samples, to which it comes nearest"
        )
    telling = [trials, *(one for one in of_later if not (mixed or one.tell_nothing(number)))]
    against = next((one for one in telling if not one.adds_up(number, rule, penalty)), None)
    return Verdict(rule) if against is None else Verdict(COUNT, _objection(name, against))


def _objection(name: str, trials: Trials) -> str:
    return f"`{name}` is neither a sum nor a mean over samples: {trials.meaning}"


def _untold(name: str) -> Verdict:
    return Verdict(
        COUNT,
        f"`{name}` is zero at first, or undefined: it is taken for a mean over samples, and may be a sum",
    )


def _losses_alone(model: Any, together: Trial) -> list[Trials]:
    """Return the compiled losses of predictions, labels and weights as they are and as they might be later.

    Nothing but losses is looked at, so it does not matter whether the model mixes rows. Predictions of a new
    model may be all the same, and then a root of a mean looks like a mean of roots.
    """
    if not any(term.compiled and term.tested for term in together.terms):
        return []
    chance = np.random.default_rng(0)
    shaken = _masked_map(lambda leaf: _shaken(leaf, chance), lambda mask: mask, together.outputs)
    tries = [
        (together.given, together.outputs, _COMPARES),
        (together.given, shaken, _COMPARES),
        *((given, shaken, why) for given, why in later(together.given)),
    ]
    found = [_unless_refused(partial(_alone, model, *one)) for one in tries]
    return [trials for trials in found if trials is not None]


def _unless_refused(run: Callable[[], Trials]) -> Trials | None:
    """Try something; None if a loss refuses predictions or labels that it would never see."""
    try:
        return run()
    except Exception as error:
        if is_exhaustion(error):
            raise
        return None


def _alone(model: Any, given: Any, outputs: Any, why: str) -> Trials:
    rows = row_count(given)
    whole, *halves = [_loss_of(model, given, outputs, *part) for part in [(0, rows), *_halves(rows)]]
    coarse = any(leaf.dtype.size < 4 for leaf in tf.nest.flatten(outputs))
    return Trials(whole, halves, ROUGH if coarse else FINE, why)


def _loss_of(model: Any, given: Any, outputs: Any, start: int, stop: int) -> Trial:
    rows = row_count(given)

    def cut(leaf: Any) -> Any:
        return leaf[start:stop] if leaf.shape.rank and leaf.shape[0] == rows else leaf

    part = rows_between(given, start, stop)
    x, y, weights = keras.utils.unpack_x_y_sample_weight(part)
    y_pred = _masked_map(cut, cut, outputs)
    terms = list(compiled_terms(model, (x, y, y_pred, weights), {}))
    # what a term weighs says nothing about how it adds up
    return Trial(part, stop - start, y_pred, terms, [_number(tf.reduce_sum(term.value)) for term in terms])


def _masked_map(change: Callable[[Any], Any], of_mask: Callable[[Any], Any], outputs: Any) -> Any:
    """Change every tensor; the masks that Keras attaches go with them."""

    def changed(leaf: Any) -> Any:
        mask, new = keras_backend.get_keras_mask(leaf), tf.identity(change(leaf))
        if mask is not None:
            keras_backend.set_keras_mask(new, of_mask(mask))
        return new

    return tf.nest.map_structure(changed, outputs)


def _shaken(leaf: Any, chance: np.random.Generator) -> Any:
    """Return other predictions of the same kind, the last rows most: what was between 0 and 1 stays there."""
    if not leaf.dtype.is_floating or not leaf.shape.rank:
        return leaf
    by_row = np.linspace(0.1, 0.9, leaf.shape[0]).reshape(-1, *[1] * (leaf.shape.rank - 1))
    share = tf.cast(by_row, leaf.dtype)
    return leaf * (1 - share) + tf.cast(chance.uniform(size=leaf.shape), leaf.dtype) * share


def _number(value: Any) -> Any:
    return np.asarray(value, np.float64)


def close(one: Any, other: Any, tolerance: float = ROUGH) -> bool:
    """Return whether two results agree but for rounding; twice undefined is agreement."""
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    # one infinite number would make all the others agree
    scale = np.max(np.abs(other), initial=0.0, where=np.isfinite(other)) + _FLOOR
    return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True))
