"""One model under training: its steps, made when the first batch is there."""

import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from anybatch.errors import AnybatchWarning
from anybatch.train.backends import backend_of
from anybatch.train.epochs import Epochs
from anybatch.train.events import tell_inexact
from anybatch.train.inputs import FirstBatch, Source, StreamSource
from anybatch.train.plans import Plan
from anybatch.train.refusals import CannotTry, tried_on_few_rows
from anybatch.train.transaction import Columns, PartSize, Transaction


@dataclass(slots=True)
class Made:
    """The traced steps of a model, kept with it so that the next `fit` does not trace anew."""

    identity: Any
    whole: Any = None
    parts: dict[Any, Any] = field(default_factory=dict)
    shared: dict[bool, Any] = field(default_factory=dict)
    found: dict[bool, Any] = field(default_factory=dict)
    """How it can be split, of data without and with sample weights: they may change how a loss adds up."""


_CHANGED = (
    "what can be trained has changed since the model was compiled: here that counts from now on, and "
    "model.fit would train as before; compile the model again, and both do the same"
)

TELLING_ROWS = 3
"""One row in a part, or two that are alike, would not tell a sum from a mean, or who looks at whom."""

IN_PARTS = (StreamSource, FirstBatch)
"""What can be asked for more rows than a part has; elsewhere a part is the whole batch."""

_ATTRIBUTE = "_anybatch_made"
"""Where a model holds them: elsewhere they would keep the model alive, as they refer to it."""


_TRAINED = "_anybatch_trained"
"""Where a model holds as what it was trained last."""


class Session:
    """A model, its framework, and the transaction that batches go through."""

    kind = Transaction

    def __init__(self, model: Any, wanted: int | None, source: Source | None = None) -> None:
        """Train in parts of at most `wanted` rows; `source` has more of them where a part says too little."""
        self.model = model
        self._source = source
        self.backend = backend_of(model)
        columns = Columns(self.backend.row_count, self.backend.rows_between, self.backend.tensors)
        self._made: Made | None = None
        self._split_by: Any = None
        """What was found out about splitting, if an update was split."""
        self._begun = False
        """Whether a first step was made of a model that could not be built before it."""
        self.tells = True
        """Whether the log says, before a first batch is split, what is not exactly the whole batch then."""
        self.went_apart = False
        """Whether the model has predicted for a part of a batch."""
        self.transaction = self.kind(self._steps, self._splitting, columns, PartSize(wanted))

    @property
    def events(self) -> list[Any]:
        return self.transaction.size.events

    def _kept(self, part: Any, rows: int | None = None) -> Made:
        """Return what was made for this model, which is built if it is not: for batches of so many rows."""
        if self._made is None:
            self.backend.build(self.model, part, rows)
            self._made = self._remembered()
        return self._made

    def _remembered(self) -> Made:
        """Return what was made for this model, as long as it is compiled and trainable as it was then."""
        identity = self.backend.identity(self.model)
        made: Made | None = vars(self.model).get(_ATTRIBUTE)
        if made is None or made.identity != identity:
            # past Keras' own __setattr__, which would look for layers in it
            made = vars(self.model)[_ATTRIBUTE] = Made(identity)
        return made

    def _steps(self, part: Any) -> Any:
        if self._begun and self._made is None:
            self._made = self._remembered()
        try:
            made = self._kept(part)
        except CannotTry:
            # as Keras does it: the first step creates what is missing; behind it others are made that know it
            self._begun = True
            return self.backend.Steps(self.model)
        if made.whole is None:
            made.whole = self.backend.Steps(self.model)
        return made.whole

    def _splitting(self, part: Any, phase: str) -> Any:
        self.backend.check_splits(self.model, phase)
        if phase == "predict":
            return _OfParts(self, self._steps(part))
        found, made = self.about_splitting(part), self._kept(part, self._batch_rows)
        if phase != "test":
            if self._split_by is None and self.tells:
                tell_inexact(found)
            self._split_by = found
        way = frozenset(found.rules.items()), frozenset(found.late)
        if way not in made.parts:
            made.parts[way] = self.backend.Steps(self.model, rules=found.rules, late=way[1])
        return made.parts[way]

    def about_splitting(self, part: Any) -> Any:
        """Return how this model can be split: found out once, by a part or by more rows of its source."""
        known, weighted = self._kept(part, self._batch_rows).found, self.backend.is_weighted(part)
        if weighted not in known:
            known[weighted] = self.backend.examined(self.model, self._telling(part))
        return known[weighted]

    @property
    def _batch_rows(self) -> int | None:
        return None if self._source is None else self._source.batch_size

    def _telling(self, part: Any) -> Any:
        if self.backend.row_count(part) >= TELLING_ROWS or not isinstance(self._source, IN_PARTS):
            return part
        more = self._source.first_rows(TELLING_ROWS)
        # what is validated on may have weights where the source has none
        return more if self.backend.is_weighted(more) == self.backend.is_weighted(part) else part

    def told(self, plan: Plan) -> Plan:
        """Return the plan with what was found out about splitting this model, if it was split at all."""
        if self._split_by is None:
            return plan
        return replace(plan, exact=self._split_by.exact, notes=(*plan.notes, *self._split_by.notes))

    def train(self, epochs: Epochs, epoch: int, callbacks: Any, batch_size: int | None) -> Any:
        """Train one epoch, and return the last logs."""
        if self._made is None:
            self._tell_changes()
        # of an epoch that was begun before, its metrics know even if no batch is left
        logs: Any = self.backend.metrics_so_far(self.model) if epochs.begun else None
        batches = epochs.batches(epoch, self.transaction.size.now)
        for begin, end, some in _executions(batches, self.model.steps_per_execution):
            self._meet()
            callbacks.on_train_batch_begin(begin)
            for batch in some:
                logs = self.transaction.update(batch, batch_size) or logs
            callbacks.on_train_batch_end(end, logs)
            if self._ends_here():
                break
        if self._made is not None:
            vars(self.model)[_TRAINED] = self._made.identity
        return self._epoch_logs(logs)

    def _meet(self) -> None:
        """Nothing is said before an update where nobody else trains."""

    def _ends_here(self) -> bool:
        """Return whether a callback has told the model to stop training, in the middle of an epoch."""
        return bool(self.model.stop_training)

    def tests_on(self, source: Source) -> None:
        """Nothing has to be known of what is validated on before it comes."""

    def _tell_changes(self) -> None:
        """Warn if other variables are trained than the last time, of a model compiled only once."""
        last, now = vars(self.model).get(_TRAINED), self.backend.identity(self.model)
        if last is not None and last != now and last[:-1] == now[:-1]:
            warnings.warn(_CHANGED, AnybatchWarning, stacklevel=4)

    def _epoch_logs(self, logs: Any) -> Any:
        """Return what Keras tells of an epoch; nothing of one without a row, of which no metric knows."""
        if logs is None:
            warnings.warn("the data has given no rows", AnybatchWarning, stacklevel=4)
            return {}
        return self.backend.epoch_logs(self.model, logs)

    def test(self, epochs: Epochs, callbacks: Any, batch_size: int | None) -> Any:
        """Evaluate, and return the logs as numbers."""
        model = self.model
        logs: Any = None
        model.stop_evaluating = False
        callbacks.on_test_begin()
        model.reset_metrics()
        batches = epochs.batches(0, self.transaction.size.now)
        for begin, end, some in _executions(batches, model.steps_per_execution):
            callbacks.on_test_batch_begin(begin)
            for batch in some:
                logs = self.transaction.test(batch, batch_size) or logs
            callbacks.on_test_batch_end(end, logs)
            if model.stop_evaluating:
                break
        logs = self.backend.numbers(self._epoch_logs(logs))
        callbacks.on_test_end(logs)
        return logs

    def predict(self, epochs: Epochs, callbacks: Any) -> Any:
        """Return what the model predicts for all batches."""
        model, found = self.model, []
        model.stop_predicting = False
        callbacks.on_predict_begin()
        batches = epochs.batches(0, self.transaction.size.now)
        for begin, end, some in _executions(batches, model.steps_per_execution):
            callbacks.on_predict_batch_begin(begin)
            outputs = [output for batch in some for output in self.transaction.predict(batch)]
            found.extend(outputs)
            callbacks.on_predict_batch_end(end, {"outputs": self.backend.joined(outputs)})
            if model.stop_predicting:
                break
        callbacks.on_predict_end()
        if not found:
            raise ValueError("the data has given no rows: there is nothing to predict; give it some")
        return self.backend.joined(found)


@dataclass(frozen=True, slots=True)
class _OfParts:
    """Predicts for parts of batches, and refuses what is not one prediction for each row."""

    session: Session
    steps: Any

    def predict(self, part: Any) -> Any:
        # what the model says to the first part tells whether it takes parts at all
        with nullcontext() if self.session.went_apart else tried_on_few_rows(self.session.model):
            found = self.steps.predict(part)
        self.session.backend.check_outputs(self.session.model, found, self.session.backend.row_count(part))
        self.session.went_apart = True
        return found


def _executions(batches: Iterator[Any], steps: int) -> Iterator[tuple[int, int, Iterator[Any]]]:
    """Yield first step, last step and the batches between which no callback is called, one by one."""
    for begin, first in _every(batches, steps):
        yield begin, begin + steps - 1, _some(first, batches, steps)


def _every(batches: Iterator[Any], steps: int) -> Iterator[tuple[int, Any]]:
    begin = 0
    for first in batches:
        yield begin, first
        begin += steps


def _some(first: Any, batches: Iterator[Any], steps: int) -> Iterator[Any]:
    yield first
    for _ in range(steps - 1):
        batch = next(batches, None)
        if batch is None:
            return
        yield batch
