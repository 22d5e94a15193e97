"""The steps of a model that several workers train: each adds its own rows, one exchange makes the batch."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from anybatch.train.backends.tensorflow_board import MemoryLog
from anybatch.train.backends.tensorflow_feed import row_count, rows_between, tensors
from anybatch.train.backends.tensorflow_findings import FEW, Findings, examined
from anybatch.train.backends.tensorflow_state import Undo, moved_by_a_part, moved_by_a_step
from anybatch.train.backends.tensorflow_steps import Steps, Summed
from anybatch.train.backends.tensorflow_terms import overrides, predictions
from anybatch.train.backends.tensorflow_workers import join
from anybatch.train.workers import PeerLost, Workers

__all__ = [
    "SAMPLE_ROWS",
    "SharedSteps",
    "join",
    "moved_by_a_step",
    "seeds_apart",
    "shared_findings",
    "without_writers",
]

SAMPLE_ROWS = FEW
"""So many rows show how a model can be split."""

_APART = 1 << 20
"""So many draws lie between the seeds of two workers: each drops out other units."""


class SharedSteps(Steps):
    """Parts of one worker, and the updates of all workers together.

    A worker that has no rows of a batch gives zeros, in the shape of what a row of `sample` gives.
    """

    def __init__(self, model: Any, found: Findings, workers: Workers, sample: Any) -> None:
        super().__init__(model, rules=found.rules, late=frozenset(found.late))
        self._workers = workers
        self._sample = rows_between(sample, 0, 1)
        self._counters = Undo(model.metrics_variables)
        self._before: list[Any] = []
        self._metrics_before: list[Any] = []
        self._exchanged: Summed | None = None
        self._spoken = False

    def begin(self) -> None:
        """Forget the parts of the last batch, and remember where this one began."""
        super().begin()
        self._exchanged, self._spoken = None, False
        self._before, self._metrics_before = self._by_part.taken(), self._counters.taken()

    def _whole_batch(self, rows: int, *, test: bool = False) -> Summed:
        # made once: whatever runs out of memory afterwards, the others will not say it all again
        if self._exchanged is not None:
            return self._exchanged
        if self._spoken:
            raise MemoryError("memory ran out while the workers put their sums together")
        mine = super()._whole_batch(rows) if rows else self._nothing(test)
        self._spoken = True
        try:
            self._exchanged = self._put_together(mine)
        except PeerLost:
            self._by_part.put_back(self._before)
            raise
        return self._exchanged

    def _put_together(self, mine: Summed) -> Summed:
        """Return the batch of all workers: one sum over everything that adds up, slices end to end."""
        leaves = tf.nest.flatten([mine.totals, mine.side])
        chosen = self._highest_in(mine.totals)
        adding = [leaf for at, leaf in enumerate(leaves) if _is_dense(leaf) and at not in chosen]
        summed = iter(self._workers.all_sum([*adding, *self._moved(), tf.constant(mine.rows, tf.float64)]))
        behind = iter(self._workers.all_rows([*_by_row(leaves, chosen), *_tensors_in(mine.late)]))
        whole = [_of_all(leaf, at in chosen, summed, behind) for at, leaf in enumerate(leaves)]
        totals, side = tf.nest.pack_sequence_as([mine.totals, mine.side], whole)
        self._counters.put_back([before + next(summed) for before in self._metrics_before])
        late = tf.nest.map_structure(lambda leaf: None if leaf is None else next(behind), mine.late)
        return Summed(totals, side, late, int(next(summed)))

    def _moved(self) -> list[Any]:
        """Return how far this worker's rows have moved the metrics."""
        return [
            now - before for now, before in zip(self._counters.taken(), self._metrics_before, strict=True)
        ]

    def _highest_in(self, totals: dict[str, Any]) -> frozenset[int]:
        """Return the places, among all gradients, of those of which the highest counts."""
        number = len(self.model.trainable_variables)
        return frozenset(
            group * number + place for group in range(len(totals)) for place in self._overwritten
        )

    def _nothing(self, test: bool) -> Summed:
        part, none = tensors(self._sample), tf.constant(0.0, tf.float64)
        try:
            if test:
                totals: dict[str, Any] = {}
                side, (late, _) = self._test_part(part, none)
            else:
                totals, side, (late, _) = self._gradients_of(part, none)
        finally:
            self._by_part.put_back(self._before)
        return Summed(
            tf.nest.map_structure(_zero, totals),
            tf.nest.map_structure(_zero, side),
            tf.nest.map_structure(lambda leaf: None if leaf is None else leaf[:0], late),
            rows=0,
        )


def shared_findings(model: Any, sample: Any) -> Findings:
    """Return what can be split exactly, and which metrics have to see the predictions of all workers."""
    found = examined(model, sample)
    for metric in _not_adding_up(model, tensors(sample)):
        if id(metric) not in found.late:
            found.late.add(id(metric))
            found.notes.append(
                f"metric `{metric.name}` does not add up over workers: each sees all predictions"
            )
    return found


def _not_adding_up(model: Any, sample: Any) -> Iterator[Any]:
    """Yield the metrics whose state after two parts is not the sum of the states after each."""
    compiled, rows = model._compile_metrics, row_count(sample)  # noqa: SLF001
    if compiled is None or overrides(model, "compute_metrics") or rows < 2:
        return
    undo = Undo(moved_by_a_part(model))
    before = undo.taken()
    halves = [rows_between(sample, 0, rows // 2), rows_between(sample, rows // 2, rows)]
    none, one, other, both = [_state(model, given) for given in ([], halves[:1], halves[1:], halves)]
    undo.put_back(before)
    for at, metric in enumerate(compiled.metrics):
        apart = [a + b - c for a, b, c in zip(one[at], other[at], none[at], strict=True)]
        if not all(np.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(apart, both[at], strict=True)):
            yield metric


def _state(model: Any, parts: list[Any]) -> list[list[Any]]:
    """Return the variables of every metric after some parts."""
    compiled = model._compile_metrics  # noqa: SLF001
    compiled.reset_state()
    for part in parts:
        x, y, weights = keras.utils.unpack_x_y_sample_weight(part)
        compiled.update_state(y, predictions(model, x, training=False), weights)
    return [[np.asarray(one.value, np.float64) for one in metric.variables] for metric in compiled.metrics]


def seeds_apart(model: Any, rank: int) -> None:
    """Move the seed generators of a worker away from those of the others."""
    for variable in model.non_trainable_variables:
        if "seed_generator" in variable.path and tuple(variable.shape) == (2,):
            key, draws = np.asarray(variable.value)
            variable.assign(np.array([key, (int(draws) + rank * _APART) % 2**32], np.uint32))


_WRITERS = (
    keras.callbacks.BackupAndRestore,
    keras.callbacks.CSVLogger,
    keras.callbacks.ModelCheckpoint,
    keras.callbacks.TensorBoard,
    MemoryLog,
)


def without_writers(callbacks: Any) -> Any:
    """Return callbacks but those that write files: only one worker should."""
    if callbacks is None or isinstance(callbacks, keras.callbacks.CallbackList):
        return callbacks
    several = callbacks if isinstance(callbacks, list | tuple) else [callbacks]
    return [callback for callback in several if not isinstance(callback, _WRITERS)]


def _is_dense(leaf: Any) -> bool:
    return leaf is not None and not isinstance(leaf, tf.IndexedSlices)


def _by_row(leaves: list[Any], chosen: frozenset[int]) -> Iterator[Any]:
    """Yield what is not summed but put end to end."""
    for at, leaf in enumerate(leaves):
        if isinstance(leaf, tf.IndexedSlices):
            yield leaf.values
            yield tf.cast(leaf.indices, tf.int64)
        elif at in chosen and leaf is not None:
            yield leaf[tf.newaxis]


def _of_all(leaf: Any, is_chosen: bool, summed: Iterator[Any], behind: Iterator[Any]) -> Any:
    """Return what one leaf is for all workers together."""
    if leaf is None:
        return None
    if isinstance(leaf, tf.IndexedSlices):
        return tf.IndexedSlices(next(behind), next(behind), leaf.dense_shape)
    return tf.reduce_max(next(behind), 0) if is_chosen else next(summed)


def _tensors_in(structure: Any) -> list[Any]:
    return [leaf for leaf in tf.nest.flatten(structure) if leaf is not None]


def _zero(leaf: Any) -> Any:
    if leaf is None:
        return None
    if isinstance(leaf, tf.IndexedSlices):
        return tf.IndexedSlices(leaf.values[:0], leaf.indices[:0], leaf.dense_shape)
    return tf.zeros_like(leaf)
