"""One model under training: its steps, made when the first batch is there."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from anybatch.errors import AnybatchWarning
from anybatch.train.backends import backend_of
from anybatch.train.epochs import Epochs
from anybatch.train.inputs import FirstBatch, Source, StreamSource, first_rows
from anybatch.train.plans import Plan
from anybatch.train.transaction import Columns, PartSize, Transaction


@dataclass(slots=True)
class Made:
    """The traced steps of a model, kept with it so that the next `fit` does not trace anew."""

    identity: Any
    whole: Any = None
    parts: Any = None
    shared: Any = None
    found: Any = None


TELLING_ROWS = 3
"""One row in a part, or two that are alike, would not tell a sum from a mean, or who looks at whom."""

IN_PARTS = (StreamSource, FirstBatch)
"""What can be asked for more rows than a part has; elsewhere a part is the whole batch."""

_ATTRIBUTE = "_anybatch_made"
"""Where a model holds them: elsewhere they would keep the model alive, as they refer to it."""


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
        self.transaction = self.kind(self._steps, self._splitting, columns, PartSize(wanted))

    @property
    def events(self) -> list[Any]:
        return self.transaction.size.events

    def _kept(self, part: Any) -> Made:
        """Return what was made for this model, as long as it is compiled and trainable as it was then."""
        if self._made is None:
            self.backend.build(self.model, part)
            identity = self.backend.identity(self.model)
            made = vars(self.model).get(_ATTRIBUTE)
            if made is None or made.identity != identity:
                # past Keras' own __setattr__, which would look for layers in it
                made = vars(self.model)[_ATTRIBUTE] = Made(identity)
            self._made = made
        return self._made

    def _steps(self, part: Any) -> Any:
        made = self._kept(part)
        if made.whole is None:
            made.whole = self.backend.Steps(self.model)
        return made.whole

    def _splitting(self, part: Any) -> Any:
        made = self._kept(part)
        if made.parts is None:
            found = self.about_splitting(part)
            made.parts = self.backend.Steps(self.model, rules=found.rules, late=frozenset(found.late))
        return made.parts

    def about_splitting(self, part: Any) -> Any:
        """Return how this model can be split: found out once, by a part or by more rows of its source."""
        made = self._kept(part)
        if made.found is None:
            made.found = self.backend.examined(self.model, self._telling(part))
        return made.found

    def _telling(self, part: Any) -> Any:
        if self.backend.row_count(part) >= TELLING_ROWS or not isinstance(self._source, IN_PARTS):
            return part
        return first_rows(self._source, TELLING_ROWS)

    def told(self, plan: Plan) -> Plan:
        """Return the plan with what was found out about splitting this model, if it was split at all."""
        found = None if self._made is None else self._made.found
        if found is None or not (self.events or (plan.parts or 1) > 1):
            return plan
        return replace(plan, exact=found.exact, notes=(*plan.notes, *found.notes))

    def train(self, epochs: Epochs, epoch: int, callbacks: Any, batch_size: int | None) -> Any:
        """Train one epoch, and return the last logs."""
        logs: Any = None
        batches = epochs.batches(epoch, self.transaction.size.now)
        for begin, end, some in _executions(batches, self.model.steps_per_execution):
            callbacks.on_train_batch_begin(begin)
            for batch in some:
                logs = self.transaction.update(batch, batch_size) or logs
            callbacks.on_train_batch_end(end, logs)
            if self.model.stop_training:
                break
        return self._epoch_logs(logs)

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
        for step, batch in enumerate(epochs.batches(0, self.transaction.size.now)):
            callbacks.on_predict_batch_begin(step)
            outputs = self.transaction.predict(batch)
            found.extend(outputs)
            callbacks.on_predict_batch_end(step, {"outputs": self.backend.joined(outputs)})
            if model.stop_predicting:
                break
        callbacks.on_predict_end()
        return self.backend.joined(found)


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
