"""How the terms of a loss add up over parts: what each part adds, and what all of it is divided by."""

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from anybatch.train.backends.tensorflow_terms import COUNT, ONE, OWN, Term
from anybatch.train.refusals import CannotSplit

COPIED = "one, copied"
"""The group of sums over samples that are added to every number of another loss."""


@dataclass(frozen=True, slots=True)
class Summand:
    """What is known of a loss term once it is traced.

    `vector`: Keras does not reduce it; `copied`: Keras adds it to every number of such a one.
    """

    name: str
    rule: str
    weight: Any
    vector: bool
    copied: bool
    compiled: bool

    @property
    def divided(self) -> bool:
        return self.vector or self.rule != ONE

    @property
    def group(self) -> str:
        """Whose gradients it is summed with: those of terms that have the same denominator."""
        if self.rule == OWN:
            return self.name
        if self.copied:
            # of a mean: by how many numbers it is copied to, by so many is it divided
            return ONE if self.rule == COUNT else COPIED
        return self.rule


def summands_of(terms: list[Term]) -> list[Summand]:
    """Return what the update has to know of the terms once the parts are summed."""
    return [_summand(term) for term in terms]


def _summand(term: Term) -> Summand:
    vector, copied = bool(term.value.shape.rank), term.copies is not None
    return Summand(term.name, term.rule, term.weight, vector, copied, term.compiled)


def check_shapes(terms: list[Term]) -> None:
    """Refuse losses that are not reduced and have different shapes: Keras adds rows of one to all of another.

    One row for each other row is a sum over pairs, which parts do not have.
    """
    shapes = {term.name: tuple(term.value.shape) for term in terms if term.value.shape.rank}
    if len(set(shapes.values())) > 1:
        raise CannotSplit(
            f"the sum of {', '.join(f'`{name}` of shape {shape}' for name, shape in shapes.items())}",
            "none of them is reduced, and Keras adds numbers of different rows to each other",
            'reduction="sum" for each of them is what is meant',
        )


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
        group, objective = _summand(term).group, term.objective
        factor = _factor(term, share)
        objective = objective if factor is None else objective * tf.cast(factor, objective.dtype)
        groups[group] = objective if group not in groups else groups[group] + objective
    return groups


def _factor(term: Term, share: Any) -> Any:
    """Return what a term is multiplied by before it is summed; None: nothing."""
    if term.copies is None:
        return None if term.rule == ONE else _alpha(term, share)
    # a part has its share of all the numbers that Keras would add it to
    return _alpha(term, share) * tf.cast(term.copies, tf.float64) / share


def correction_of(group: str, summands: list[Summand], reports: Any, sizes_were_right: bool) -> Any:
    """Return what the sums of a group are still to be multiplied by; None: nothing."""
    if group == ONE or (group in (COUNT, COPIED) and sizes_were_right):
        return None
    number = next(n for n, one in enumerate(summands) if one.group == group)
    measured = None if group == COPIED else tf.math.reciprocal_no_nan(reports[number][1])
    if not summands[number].copied:
        return measured
    # what is not reduced is measured by rows: as many as were expected, or what came of them
    came = next(reports[n][1] for n, one in enumerate(summands) if one.vector)
    return came if measured is None else came * measured


def loss_of(summand: Summand, numerator: Any, denominator: Any) -> Any:
    """Return the value of a term over all parts."""
    return tf.math.divide_no_nan(numerator, denominator) if summand.divided else numerator


def total_of(values: list[Any], summands: list[Summand], penalty: Any) -> Any:
    """Return the loss that is shown: of all terms, by their weights, and of the weight regularisation."""
    total = tf.add_n([_weighted(value, one) for value, one in zip(values, summands, strict=True)])
    return total if penalty is None else total + tf.cast(penalty, total.dtype)


def _weighted(value: Any, summand: Summand) -> Any:
    return value if summand.weight is None else value * tf.cast(summand.weight, value.dtype)
