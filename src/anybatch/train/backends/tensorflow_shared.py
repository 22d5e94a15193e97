"""The steps of a model that several workers train: each adds its own rows, one exchange makes the batch."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from anybatch.train.backends.tensorflow_board import MemoryLog
from anybatch.train.backends.tensorflow_feed import rows_between, tensors
from anybatch.train.backends.tensorflow_findings import FEW, Findings
from anybatch.train.backends.tensorflow_shared_findings import shared_findings
from anybatch.train.backends.tensorflow_state import Undo, moved_by_a_step
from anybatch.train.backends.tensorflow_steps import Steps, Summed
from anybatch.train.backends.tensorflow_workers import join
from anybatch.train.workers import AllStop, PeerLost, Workers

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
        self._of_first = {
            id(one)
            for metric in _every(model.metrics)
            if id(metric) in found.of_first
            for one in metric.variables
        }
        self._averaged = Undo([one for one in model.variables if id(one) in found.moving])
        self._before: list[Any] = []
        self._metrics_before: list[Any] = []
        self._exchanged: Summed | None = None
        self._spoken = False
        self._leaving = False

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
        except (PeerLost, AllStop):
            self._by_part.put_back(self._before)
            raise
        return self._exchanged

    def leave(self) -> None:
        """Tell the others, in place of an update, that this worker was told to stop; none makes one then."""
        self.begin()
        self._leaving = True
        try:
            self._whole_batch(0)
        finally:
            self._leaving = False

    def _put_together(self, mine: Summed) -> Summed:
        """Return the batch of all workers: one sum over everything that adds up, slices end to end."""
        leaves, late = tf.nest.flatten([mine.totals, mine.side]), _tensors_in(mine.late)
        chosen = self._highest_in(mine.totals)
        adding = [leaf for at, leaf in enumerate(leaves) if _is_dense(leaf) and at not in chosen]
        # what a forward pass moves and nobody pools: all go on from the mean over rows
        own = self._averaged.taken() if mine.totals else []
        weighed = [mine.rows * tf.cast(value, tf.float64) for value in own]
        counts = tf.constant([mine.rows, self._leaving, *_widths(late, mine.rows)], tf.float64)
        summed = iter(self._workers.all_sum([counts, *adding, *self._moved(), *weighed]))
        rows, leaving, *widths = (int(number) for number in next(summed))
        if leaving:
            raise AllStop
        late = late if mine.rows else _as_wide(late, widths)
        behind = iter(self._workers.all_rows([*_by_row(leaves, chosen), *late]))
        whole = [_of_all(leaf, at in chosen, summed, behind) for at, leaf in enumerate(leaves)]
        totals, side = tf.nest.pack_sequence_as([mine.totals, mine.side], whole)
        self._counters.put_back([before + next(summed) for before in self._metrics_before])
        if rows and mine.totals:
            means = [tf.cast(total / rows, one.dtype) for total, one in zip(summed, own, strict=True)]
            self._averaged.put_back(means)
        gathered = tf.nest.map_structure(lambda leaf: None if leaf is None else next(behind), mine.late)
        return Summed(totals, side, gathered, rows)

    def _moved(self) -> list[Any]:
        """Return how far this worker's rows have moved the metrics."""
        moved = [
            now - before for now, before in zip(self._counters.taken(), self._metrics_before, strict=True)
        ]
        if self._workers.rank == 0:
            return moved
        variables = self._counters.variables
        return [
            tf.zeros_like(value) if id(one) in self._of_first else value
            for one, value in zip(variables, moved, strict=True)
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
    keras.callbacks.RemoteMonitor,
    keras.callbacks.TensorBoard,
    MemoryLog,
)


def without_writers(callbacks: Any) -> Any:
    """Return callbacks but those that write files, or to a server: only one worker should."""
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


def _widths(late: list[Any], rows: int) -> Iterator[int]:
    """Yield whether this worker has rows, and of what shape each is that metrics see behind the others'."""
    for size in (1, *(size for leaf in late for size in leaf.shape[1:])):
        yield size if rows else 0


def _as_wide(late: list[Any], widths: list[int]) -> list[Any]:
    """Return no rows in the shape of those of the others: their sentences may be longer than the sample's."""
    having, *sizes = widths
    if not having:
        return late
    each = iter(size // having for size in sizes)
    return [tf.zeros([0, *(next(each) for _ in leaf.shape[1:])], leaf.dtype) for leaf in late]


def _every(metrics: list[Any]) -> Iterator[Any]:
    """Yield metrics, those that Keras holds in one for all of `compile` too."""
    for metric in metrics:
        yield metric
        yield from getattr(metric, "metrics", ())


def _tensors_in(structure: Any) -> list[Any]:
    return [leaf for leaf in tf.nest.flatten(structure) if leaf is not None]


def _zero(leaf: Any) -> Any:
    if leaf is None:
        return None
    if isinstance(leaf, tf.IndexedSlices):
        return tf.IndexedSlices(leaf.values[:0], leaf.indices[:0], leaf.dense_shape)
    return tf.zeros_like(leaf)
