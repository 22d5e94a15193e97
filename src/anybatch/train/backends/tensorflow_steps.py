"""The step functions of one compiled Keras model on TensorFlow.

Every method here happens whole or not at all: what a failing call has moved is put back before it raises.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import keras
import tensorflow as tf

from anybatch.errors import AnybatchWarning
from anybatch.train.backends import tensorflow_metrics as metrics
from anybatch.train.backends import tensorflow_norms as norms
from anybatch.train.backends.tensorflow_begun import Begun
from anybatch.train.backends.tensorflow_gradients import Gradients, Sums, added, scaled
from anybatch.train.backends.tensorflow_metrics import behind_each_other
from anybatch.train.backends.tensorflow_refusals import takes_any_rows
from anybatch.train.backends.tensorflow_room import leaves_of, room_for
from anybatch.train.backends.tensorflow_rows import ForAnyRows
from anybatch.train.backends.tensorflow_state import (
    Undo,
    moved_by_a_part,
    moved_by_a_step,
    moved_by_the_loss,
)
from anybatch.train.backends.tensorflow_summands import (
    Summand,
    correction_of,
    loss_of,
    objectives_of,
    reports_of,
    summands_of,
    total_of,
)
from anybatch.train.backends.tensorflow_terms import (
    Rules,
    minimised,
    overrides,
    penalties,
    penalty_outside,
    predictions,
    terms_of,
    watched_losses,
)

_NOTHING = Undo([])


class SeveralGroups(Exception):
    """Found while tracing: the loss has terms whose gradients are summed apart."""


@dataclass(frozen=True, slots=True)
class Summed:
    """One batch: gradients by group, sums of losses and statistics, what late metrics see, and its rows."""

    totals: dict[str, Gradients]
    side: Any
    late: Any
    rows: int


class Steps:
    """Whole updates, parts of updates, tests and predictions of one model.

    `rules` say how terms add up of which nothing declares it, `late` which metrics have to see whole batches.
    """

    def __init__(self, model: Any, *, rules: Rules | None = None, late: frozenset[int] = frozenset()) -> None:
        self.model = model
        self._rules = rules or {}
        self._late = late
        self._sums: dict[str, Sums] = {}
        self._side: Any = None
        self._seen: list[Any] = []
        self._own_logs: Any = None
        """What a `compute_metrics` of the model's own has told last: of a batch without rows, that before."""
        self._summands: list[Summand] = []
        self._test_summands: list[Summand] = []
        self._normed: list[Any] = []
        self._begun = Begun(counts=not (self._keeps_all or model.jit_compile))
        # nothing is traced eagerly: what was found on the way would have happened
        self._one_group = not model.run_eagerly
        self._whole = self._traced(model.train_step if self._keeps_all else self._whole_update)
        self._part = self._traced(self._part_of_update)
        tracked = _trackers(model) and not overrides(model, "test_step")
        self._test_whole = self._traced(self._whole_test if tracked else model.test_step)
        self._test_part = self._traced(self._part_of_test)
        self._predict = self._traced(model.predict_step)
        self._finish = self._plainly_traced(self._update)
        self._finish_test = self._plainly_traced(self._close)
        self._more = self._plainly_traced(_sum)

    def _traced(self, step: Callable[..., Any]) -> Callable[..., Any]:
        if self.model.run_eagerly:
            return step
        if takes_any_rows(self.model):
            return ForAnyRows(step, jit_compile=self.model.jit_compile)
        return tf.function(step, autograph=False, reduce_retracing=True, jit_compile=self.model.jit_compile)  # type: ignore[no-any-return]

    def _plainly_traced(self, step: Callable[..., Any]) -> Callable[..., Any]:
        return step if self.model.run_eagerly else tf.function(step, autograph=False, reduce_retracing=True)

    @cached_property
    def _keeps_all(self) -> bool:
        """Whether all that a whole update moves is kept until it is through.

        So it is where nobody can say when the first weight changes or what that takes: a step or an optimizer
        of the user's own, or a model that is not traced.
        """
        own = not type(self.model.optimizer).__module__.startswith("keras.src")
        return own or self.model.run_eagerly or overrides(self.model, "train_step")

    @cached_property
    def _by_loss(self) -> Undo:
        own_loss = overrides(self.model, "compute_loss")
        return Undo(moved_by_the_loss(self.model, own_loss=own_loss))

    @cached_property
    def _by_part(self) -> Undo:
        return Undo(moved_by_a_part(self.model))

    @cached_property
    def _by_step(self) -> Undo:
        return Undo(moved_by_a_step(self.model))

    # whole batches

    def update_whole(self, batch: Any) -> Any:
        """Make one update of one batch, and return its logs."""
        undo = self._by_step if self._keeps_all else self._by_loss
        with self._begun.watched(undone=False):
            return _undone(undo, lambda: self._whole(batch))

    def test_whole(self, batch: Any) -> Any:
        """Count one batch by Keras' own `test_step`, and return its logs."""
        return _undone(self._by_part, lambda: self._test_whole(batch))

    def predict(self, batch: Any) -> Any:
        """Return what the model predicts."""
        return _undone(self._by_part, lambda: self._predict(batch))

    # parts

    def begin(self) -> None:
        """Forget the parts of the last batch."""
        self._side, self._seen = None, []
        for sums in self._sums.values():
            sums.forget()

    def add_part(self, part: Any, share: float) -> None:
        """Add one part, which is `share` of its batch as far as that is known."""
        fraction = tf.constant(share, tf.float64)
        _undone(self._by_part, lambda: self._accumulate(*self._gradients_of(part, fraction)))

    def add_test_part(self, part: Any, share: float) -> None:
        """Count one part of a batch."""
        fraction = tf.constant(share, tf.float64)
        _undone(self._by_part, lambda: self._count(*self._test_part(part, fraction)))

    def commit(self, rows: int, *, sizes_were_right: bool, careful: bool = False) -> Any:
        """Make the update of all parts together, and return the logs.

        Room for all of it is taken first; `careful`: what it changes is kept instead, which takes less room
        and more time.
        """
        whole = self._whole_batch(rows)
        if not whole.rows:
            return None
        keeping = careful or self._keeps_all
        undo = self._by_step if keeping else _NOTHING
        counting = (whole.late, tf.constant(whole.rows))
        with self._begun.watched(undone=keeping):
            logs = _undone(
                undo, lambda: self._finish(whole.totals, whole.side, counting, sizes_were_right, keeping)
            )
        return metrics.told(self._own_logs, logs)

    def _whole_batch(self, rows: int, *, test: bool = False) -> Summed:
        """Return what the parts that were added come to; several workers put theirs together here."""
        late = behind_each_other(self._seen) if self._late else None
        return Summed(self._totals(), self._side, late, rows)

    def _totals(self) -> dict[str, Gradients]:
        return {group: sums.total() for group, sums in self._sums.items() if sums.any}

    def gradients(self, *, sizes_were_right: bool) -> Gradients:
        """Return the gradients of all parts together, and make no update."""
        return self._gradients(self._totals(), self._side, sizes_were_right)[1]

    def commit_test(self, rows: int) -> Any:
        """Count the batch whose parts were added, and return the logs."""
        whole = self._whole_batch(rows, test=True)
        if not whole.rows:
            return None
        count = tf.constant(whole.rows)
        logs = _undone(self._by_part, lambda: self._finish_test(whole.side, whole.late, count))
        return metrics.told(self._own_logs, logs)

    def _gradients_of(self, part: Any, share: Any) -> tuple[dict[str, Gradients], Any, Any]:
        try:
            return self._part(part, share)  # type: ignore[no-any-return]
        except SeveralGroups:
            self._one_group = False
            self._part = self._traced(self._part_of_update)
            return self._part(part, share)  # type: ignore[no-any-return]

    def _accumulate(self, gradients: dict[str, Gradients], side: Any, seen: Any) -> None:
        # first of all: where a gradient has been added already, nothing may run out of memory any more
        together = self._with_more(side)
        if self._side is None:
            for group, one in gradients.items():
                self._sums.setdefault(group, Sums(self._overwritten)).start(one)
        else:
            for number, (group, one) in enumerate(gradients.items()):
                self._sums[group].add(one, begun=number > 0)
        self._remember(together, seen)

    def _count(self, side: Any, seen: Any) -> None:
        self._remember(self._with_more(side), seen)

    def _with_more(self, side: Any) -> Any:
        return side if self._side is None else self._more(self._side, side)

    def _remember(self, together: Any, seen: Any) -> None:
        self._side = together
        late, self._own_logs = seen
        if self._late:
            self._seen.append(late)

    # what is traced

    def _whole_update(self, batch: Any) -> Any:
        """Do what Keras' `train_step` does, but touch nothing before there is room to finish."""
        model = self.model
        x, y, weights = keras.utils.unpack_x_y_sample_weight(batch)
        with tf.GradientTape() as tape:
            y_pred = predictions(model, x, training=True)
            loss, one_by_one = self._loss((x, y, y_pred, weights), training=True)
            objective = _scaled_loss(model, loss)
        gradients = tape.gradient(objective, [variable.value for variable in model.trainable_variables])
        with tf.control_dependencies([*leaves_of(gradients), loss]):
            room = room_for(model, self._by_step.n_bytes, y_pred)
        with tf.control_dependencies(self._begun.marked(room)):
            self._track(loss, one_by_one, _rows(x))
            _apply(model, gradients)
            return model.compute_metrics(x, y, y_pred, sample_weight=weights)

    def _loss(self, given: tuple[Any, ...], *, training: bool) -> tuple[Any, list[Any]]:
        """Return what Keras minimises of a whole batch, and what it shows of several losses one by one."""
        model = self.model
        if not _trackers(model):
            return model._compute_loss(*given, training=training), []  # noqa: SLF001
        with watched_losses(model) as losses:
            total = model._compute_loss(*given, training=training)  # noqa: SLF001
        return total, [loss.reported for loss in minimised(losses, given)]

    def _track(self, loss: Any, values: list[Any], rows: Any) -> None:
        """Count a batch by its rows. Keras counts its terms by a static shape, which need not be known."""
        self.model._loss_tracker.update_state(loss, sample_weight=rows)  # noqa: SLF001
        trackers = _trackers(self.model)
        # of several losses on one output Keras shows none
        for tracker, value in zip(trackers, values, strict=True) if len(values) == len(trackers) else ():
            tracker.update_state(value, sample_weight=rows)

    def _whole_test(self, batch: Any) -> Any:
        """Do what Keras' `test_step` does, and count several losses by their rows."""
        x, y, weights = keras.utils.unpack_x_y_sample_weight(batch)
        y_pred = predictions(self.model, x, training=False)
        loss, one_by_one = self._loss((x, y, y_pred, weights), training=False)
        self._track(loss, one_by_one, _rows(x))
        return self.model.compute_metrics(x, y, y_pred, sample_weight=weights)

    def _part_of_update(self, part: Any, share: Any) -> tuple[dict[str, Gradients], Any, Any]:
        model = self.model
        x, y, weights = keras.utils.unpack_x_y_sample_weight(part)
        with norms.Moments(model).watched() as moments:
            # under a tape that may be asked twice an LSTM keeps three times as much for its gradients
            with tf.GradientTape(persistent=not self._one_group) as tape:
                y_pred = predictions(model, x, training=True)
                terms = terms_of(model, (x, y, y_pred, weights), self._rules, training=True)
                objectives = {
                    group: _scaled_loss(model, objective)
                    for group, objective in objectives_of(terms, share).items()
                }
            moments.close()
            if self._one_group and len(objectives) > 1:
                raise SeveralGroups
            variables = [variable.value for variable in model.trainable_variables]
            gradients = {group: tape.gradient(one, variables) for group, one in objectives.items()}
            del tape
        # the sums are added to only when every gradient is there; so are the metrics
        with tf.control_dependencies(leaves_of(gradients)):
            own_logs = metrics.update(model, (x, y, y_pred, weights), self._late)
        self._normed, self._summands = moments.layers(), summands_of(terms)
        return (
            gradients,
            (reports_of(terms, share), moments.sums()),
            ((y, y_pred, weights) if self._late else None, own_logs),
        )

    def _part_of_test(self, part: Any, share: Any) -> tuple[Any, Any]:
        model = self.model
        x, y, weights = keras.utils.unpack_x_y_sample_weight(part)
        y_pred = predictions(model, x, training=False)
        terms = terms_of(model, (x, y, y_pred, weights), self._rules, training=False)
        own_logs = metrics.update(model, (x, y, y_pred, weights), self._late)
        # a layer may add losses in training only
        self._test_summands = summands_of(terms)
        late = (y, y_pred, weights) if self._late else None
        return (reports_of(terms, share), []), (late, own_logs)

    def _update(
        self,
        totals: dict[str, Gradients],
        side: Any,
        counting: tuple[Any, Any],
        sizes_were_right: bool,
        kept: bool,
    ) -> Any:
        late, rows = counting
        model = self.model
        penalty, gradients = self._gradients(totals, side, sizes_were_right)
        with tf.control_dependencies(leaves_of(gradients)):
            room = [] if kept else room_for(model, self._by_step.n_bytes, late)
        with tf.control_dependencies(self._begun.marked([*leaves_of(gradients), *room])):
            _apply(model, gradients)
            for layer, sums in zip(self._normed, side[1], strict=True):
                norms.commit(layer, sums)
            return self._counted(self._summands, side, late, rows, penalty)

    def _gradients(
        self, totals: dict[str, Gradients], side: Any, sizes_were_right: bool
    ) -> tuple[Any, Gradients]:
        """Return the weight regularisation, and the gradients of the whole batch with those of it."""
        penalty, gradients = self._penalty()
        for group, total in totals.items():
            factor = correction_of(group, self._summands, side[0], sizes_were_right)
            right = total if factor is None else self._scaled(total, factor)
            gradients = [added(one, other) for one, other in zip(right, gradients, strict=True)]
        return penalty, gradients

    def _scaled(self, total: Gradients, factor: Any) -> Gradients:
        return [one if place in self._overwritten else scaled(one, factor) for place, one in enumerate(total)]

    @property
    def _overwritten(self) -> frozenset[int]:
        """The places of variables that are not moved by their gradient but become it."""
        variables = self.model.trainable_variables
        return frozenset(
            n for n, one in enumerate(variables) if getattr(one, "overwrite_with_gradient", None)
        )

    def _penalty(self) -> tuple[Any, Gradients]:
        """Return the weight regularisation and its gradients: it belongs to the update, not to a part."""
        model = self.model
        with tf.GradientTape() as tape:
            losses = penalties(model) if penalty_outside(model, self._rules) else []
            loss = _scaled_loss(model, tf.add_n(losses)) if losses else None
        variables = [variable.value for variable in model.trainable_variables]
        if loss is None:
            return None, [None] * len(variables)
        return tf.add_n(losses), list(tape.gradient(loss, variables))

    def _close(self, side: Any, late: Any, rows: Any) -> Any:
        return self._counted(self._test_summands, side, late, rows, self._penalty()[0])

    def _counted(self, summands: list[Summand], side: Any, late: Any, rows: Any, penalty: Any) -> Any:
        """Count the batch once in what Keras counts by batch, and return the logs."""
        model = self.model
        values = [loss_of(one, *report) for one, report in zip(summands, side[0], strict=True)]
        shown = [value for value, one in zip(values, summands, strict=True) if one.compiled]
        self._track(total_of(values, summands, penalty), shown, rows)
        if self._late:
            metrics.update_late(model, late, self._late)
        return model.get_metrics_result()


def _undone(undo: Undo, run: Callable[[], Any]) -> Any:
    """Run something; if it fails, put back what it has moved."""
    before = undo.taken()
    try:
        return run()
    except BaseException:
        undo.put_back(before)
        raise


def _trackers(model: Any) -> list[Any]:
    """Return what Keras shows several losses in, one by one; a loss of the model's own is one."""
    if model._compile_loss is None or overrides(model, "compute_loss"):  # noqa: SLF001
        return []
    return list(model._compile_loss.metrics)  # noqa: SLF001


def _rows(x: Any) -> Any:
    # a ragged or a sparse tensor is one leaf, or its values would be counted
    return tf.shape(next(leaf for leaf in tf.nest.flatten(x) if leaf is not None))[0]


def _apply(model: Any, gradients: Gradients) -> None:
    """Let the optimizer make the update; where nothing can be trained, say so and go on, as Keras does."""
    if model.trainable_variables:
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    else:
        warnings.warn("the model has no trainable weights: nothing is updated", AnybatchWarning, stacklevel=2)


def _scaled_loss(model: Any, loss: Any) -> Any:
    return model.optimizer.scale_loss(loss) if model.optimizer is not None else loss


def _sum(one: Any, other: Any) -> Any:
    return tf.nest.map_structure(tf.add, one, other)
