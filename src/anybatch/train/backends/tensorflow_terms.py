"""The loss of a batch as terms that add up over its parts, each with the measure it is divided by."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from keras.src.losses import loss as keras_loss

COUNT, ONE, OWN = "count", "one", "own"
"""A mean over samples; a sum over samples; a mean over something that only the data tells."""

WITHOUT_PENALTY = "one without penalty"
"""A sum over samples once the weight regularisation is taken out, which a model's own loss has in it."""

_MEANS = {"mean", "sum_over_batch_size", "mean_with_sample_weight"}


@dataclass(frozen=True, slots=True)
class Term:
    """One summand of the loss.

    `rule` says what makes the parts' values the whole batch's: COUNT, ONE, or OWN with `measure`, what Keras
    divides by, per element. `tested` tells that the rule is a guess to be tested: nothing
    declares whether the value is a sum or a mean. `compiled`: of a model it takes the predictions alone.
    `copies`: beside losses that are not reduced Keras adds one number to each of theirs, which are so many.
    """

    name: str
    value: Any
    weight: Any
    rule: str
    measure: Any = None
    tested: bool = False
    compiled: bool = False
    copies: Any = None

    @property
    def objective(self) -> Any:
        """What is minimised: a vector is minimised as its sum."""
        return tf.reduce_sum(self.value if self.weight is None else self.value * self.weight)

    @property
    def reported(self) -> Any:
        """What the loss tracker sees: of a vector the mean, of which rows count."""
        return _reported(self.value)


def _reported(value: Any) -> Any:
    return tf.cast(tf.reduce_mean(value) if value.shape.rank else value, tf.float64)


Rules = Mapping[str, str]
"""What a test found about terms of which nothing declares how they add up."""


def overrides(model: Any, method: str) -> bool:
    """Return whether a model's class has its own version of one of Keras' methods."""
    owner = next(cls for cls in type(model).__mro__ if method in vars(cls))
    return not owner.__module__.startswith("keras.src")


def predictions(model: Any, x: Any, training: bool) -> Any:
    """Return what the model makes of `x`, as Keras' own steps call it."""
    return model(x, training=training) if model._call_has_training_arg else model(x)  # noqa: SLF001


def terms_of(model: Any, given: tuple[Any, ...], rules: Rules, *, training: bool) -> list[Term]:
    """Return the loss but its weight regularisation; given are x, y, y_pred and sample weights."""
    if overrides(model, "compute_loss"):
        return [_whole_loss(model, given, rules, training)]
    return [*compiled_terms(model, given, rules), *_added(model, rules)]


def penalties(model: Any) -> list[Any]:
    """Return the weight regularisation: no data in it, so that it belongs to the update, not to a part."""
    return list(model._get_regularization_losses())  # noqa: SLF001


def penalty_outside(model: Any, rules: Rules) -> bool:
    """Return whether the terms leave the weight regularisation out."""
    return not overrides(model, "compute_loss") or rules.get("compute_loss") == WITHOUT_PENALTY


def _whole_loss(model: Any, given: tuple[Any, ...], rules: Rules, training: bool) -> Term:
    value = model._compute_loss(*given, training=training)  # noqa: SLF001
    rule = rules.get("compute_loss", COUNT)
    if rule == WITHOUT_PENALTY:
        value, rule = value - tf.add_n(penalties(model)), ONE
    return Term("compute_loss", value, None, rule, tested=True)


def _added(model: Any, rules: Rules) -> Iterator[Term]:
    losses = model.losses
    for number, loss in enumerate(losses[: len(losses) - len(penalties(model))]):
        name = f"add_loss {number}"
        value = model._aggregate_additional_loss(loss)  # noqa: SLF001
        yield Term(name, value, None, rules.get(name, COUNT), tested=True)


def compiled_terms(model: Any, given: tuple[Any, ...], rules: Rules) -> Iterator[Term]:
    """Let Keras find which loss belongs to which output, and look at each loss on the way."""
    compiled = model._compile_loss  # noqa: SLF001
    if compiled is None:
        return
    with watched_losses(model) as watched:
        total = compiled(*given[1:])
    numbers = tf.size(total) if total is not None and total.shape.rank else None
    for number, one in enumerate(minimised(watched, given)):
        yield one.term(number, rules, numbers)


def minimised(watched: list["WatchedLoss"], given: tuple[Any, ...]) -> list["WatchedLoss"]:
    """Return the losses that Keras adds up: of several on the one output it minimises the first."""
    several = tf.nest.is_nested(given[1]) or tf.nest.is_nested(given[2])
    return watched if several else watched[:1]


@contextmanager
def watched_losses(model: Any) -> Iterator[list["WatchedLoss"]]:
    """See what every compiled loss returns, and let Keras count none of them in its own trackers."""
    compiled = model._compile_loss  # noqa: SLF001
    flat, trackers = compiled._flat_losses, compiled._metrics  # noqa: SLF001
    watched = [WatchedLoss(loss) for loss in flat]
    compiled._flat_losses = [  # noqa: SLF001
        loss._replace(loss=one) for loss, one in zip(flat, watched, strict=True)
    ]
    # Keras weighs these by a static shape, which two part sizes make unknown: the update does it, by rows
    compiled._metrics = [None] * len(flat)  # noqa: SLF001
    try:
        yield watched
    finally:
        compiled._flat_losses, compiled._metrics = flat, trackers  # noqa: SLF001


class WatchedLoss:
    """A loss that remembers what it was reduced from."""

    def __init__(self, of_output: Any) -> None:
        self._of_output = of_output
        self._value: Any = None
        self._reduced: list[tuple[Any, ...]] = []

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        with _reductions() as self._reduced:
            self._value = self._of_output.loss(y_true, y_pred, sample_weight)
        return self._value

    @property
    def reported(self) -> Any:
        """What a tracker of this loss alone sees."""
        return _reported(self._value)

    def term(self, number: int, rules: Rules, numbers: Any) -> Term:
        """Return the summand that this is, of a loss that has so many numbers; None: it is one."""
        # the number first: losses of one layer, or of outputs without names, are called the same
        called = self._of_output.name
        name = f"loss {number} ({called})" if called else f"loss {number}"
        rule, measure, tested = self._rule(rules.get(name))
        weight = self._of_output.loss_weights
        copies = None if self._value.shape.rank else numbers
        return Term(name, self._value, weight, rule, measure, tested, compiled=True, copies=copies)

    def _rule(self, found: str | None) -> tuple[str, Any, bool]:
        if len(self._reduced) != 1 or not self._reduced[0][0].shape.rank:
            # a function that returns one number still claims to be a mean
            return found or COUNT, None, True
        _, sample_weight, mask, reduction, dtype = self._reduced[0]
        if reduction not in _MEANS:
            return ONE, None, False
        weighed = reduction == "mean_with_sample_weight" and sample_weight is not None
        if mask is None and not weighed:
            return COUNT, None, False
        divided_by = keras_loss.apply_mask(sample_weight, mask, dtype, reduction) if weighed else mask
        return OWN, _measure(divided_by), False


def _measure(weights: Any) -> Any:
    """Return the mean weight: times the rows it is what Keras divides by, up to a constant."""
    return tf.reduce_mean(tf.cast(weights, tf.float64))


@contextmanager
def _reductions() -> Iterator[list[tuple[Any, ...]]]:
    """See what Keras reduces to a loss: values, sample weights, mask, reduction, dtype.

    Only there a mask that a loss itself makes (`ignore_class`) and one that comes out of the model meet.
    """
    seen: list[tuple[Any, ...]] = []
    original = keras_loss.reduce_weighted_values

    def watching(
        values: Any,
        sample_weight: Any = None,
        mask: Any = None,
        reduction: Any = "sum_over_batch_size",
        dtype: Any = None,
    ) -> Any:
        seen.append((tf.convert_to_tensor(values), sample_weight, mask, reduction, dtype))
        return original(values, sample_weight, mask, reduction, dtype)

    keras_loss.reduce_weighted_values = watching
    try:
        yield seen
    finally:
        keras_loss.reduce_weighted_values = original
