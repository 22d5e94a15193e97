"""How the terms of a loss add up over parts: what each part adds, and what all of it is divided by."""

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from anybatch.train.backends.tensorflow_terms import COUNT, ONE, OWN, Term


@dataclass(frozen=True, slots=True)
class Summand:
    """What is known of a loss term once it is traced; `vector`: Keras does not reduce it."""

    name: str
    rule: str
    weight: Any
    vector: bool

    @property
    def divided(self) -> bool:
        return self.vector or self.rule != ONE


def summands_of(terms: list[Term]) -> list[Summand]:
    """Return what the update has to know of the terms once the parts are summed."""
    return [Summand(term.name, term.rule, term.weight, bool(term.value.shape.rank)) for term in terms]


def reports_of(terms: list[Term], share: Any) -> list[Any]:
    """Return of every term what it adds to the loss of the batch, and to what that is divided by."""
    return [
        (alpha * term.reported, alpha)
        for term in terms
        for alpha in [share if term.value.shape.rank else _alpha(term, share)]
    ]


def _alpha(term: Term, share: Any) -> Any:
    if term.rule == ONE:
        return tf.constant(1.0, tf.float64)
    return share if term.rule == COUNT else share * term.measure


def objectives_of(terms: list[Term], share: Any) -> dict[str, Any]:
    """Return what is differentiated, by group: terms of one group have one denominator."""
    groups: dict[str, Any] = {}
    for term in terms:
        group = term.name if term.rule == OWN else term.rule
        objective = term.objective
        objective = (
            objective if term.rule == ONE else objective * tf.cast(_alpha(term, share), objective.dtype)
        )
        groups[group] = objective if group not in groups else groups[group] + objective
    return groups


def loss_of(summand: Summand, numerator: Any, denominator: Any) -> Any:
    """Return the value of a term over all parts."""
    return tf.math.divide_no_nan(numerator, denominator) if summand.divided else numerator


def total_of(values: list[Any], summands: list[Summand], penalty: Any) -> Any:
    """Return the loss that is shown: of all terms, by their weights, and of the weight regularisation."""
    total = tf.add_n([_weighted(value, one) for value, one in zip(values, summands, strict=True)])
    return total if penalty is None else total + tf.cast(penalty, total.dtype)


def _weighted(value: Any, summand: Summand) -> Any:
    return value if summand.weight is None else value * tf.cast(summand.weight, value.dtype)
