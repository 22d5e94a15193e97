"""A log of memory and speed for TensorBoard."""

from typing import Any

import keras
import tensorflow as tf

from anybatch.memory import PeakWatch
from anybatch.train.gauge import Gauge, Pace, Reading

_SCALAR = tf.compat.v1.SummaryMetadata(plugin_data={"plugin_name": "scalars"}, data_class="DATA_CLASS_SCALAR")
"""What makes TensorBoard draw curves. `tf.summary.scalar` writes the same, but where it is installed only."""


class MemoryLog(keras.callbacks.Callback):  # type: ignore[misc]
    """Writes samples per second, parts, bytes held, at most held and allowed, by the number of the update.

    `fit` of anybatch shows it a gauge that knows all of it; under `model.fit` it looks from outside.
    """

    def __init__(self, log_dir: str, every: int | None, outside: Gauge) -> None:
        super().__init__()
        self._log_dir = log_dir
        self._every = every
        self.gauge = outside
        self._pace = Pace()
        self._watch = PeakWatch()
        self._seen = 0

    def on_train_begin(self, logs: Any = None) -> None:
        self._writer = tf.summary.create_file_writer(self._log_dir)
        self._watch = PeakWatch()
        self._watch.__enter__()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._pace, self._seen = Pace(), 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        first = not self._seen
        self._seen = batch + 1
        if first:
            self._pace.at(self._seen)
        if self._every is not None and self._seen % self._every == 0:
            self._write()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._write()

    def on_train_end(self, logs: Any = None) -> None:
        self._watch.__exit__()
        self._writer.close()

    def _write(self) -> None:
        reading = self.gauge.reading(self._pace.at(self._seen))
        with self._writer.as_default(step=int(self.model.optimizer.iterations)):
            for name, value in (*_scalars(reading), ("memory/peak_bytes", self._watch.look())):
                tf.summary.write(name, tf.constant(value, tf.float32), metadata=_SCALAR)
        self._writer.flush()


def show(gauge: Gauge, callbacks: Any) -> None:
    """Let the logs of memory among some callbacks see how training stands."""
    for callback in callbacks.callbacks:
        if isinstance(callback, MemoryLog):
            callback.gauge = gauge


def _scalars(reading: Reading) -> list[tuple[str, float]]:
    """Return all that is known, by names that group on the board."""
    speed = [("training/samples_per_second", reading.samples_per_second), ("training/parts", reading.parts)]
    held = [
        (f"memory{level.name and '_' + level.name}/{what}", n_bytes)
        for level in reading.levels
        for what, n_bytes in (("held_bytes", level.held_bytes), ("limit_bytes", level.limit_bytes))
    ]
    return [(name, float(value)) for name, value in (*speed, *held) if value is not None]
