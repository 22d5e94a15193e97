"""Keras' progress bar, with memory in it."""

import time
from typing import Any, Self

import keras

from anybatch.train.gauge import Gauge, Pace

_LOOK_SECONDS = 0.1
"""The bar is drawn at most that often, and a look takes as long as a step of a small model."""


class Worded(float):
    """A number that the bar prints in words of its own: it knows floats with four digits only."""

    words: str

    def __new__(cls, words: str) -> Self:
        made = super().__new__(cls, 1)
        made.words = words
        return made

    def __truediv__(self, _: object) -> "Worded":
        # the bar divides by how many values it has added up, which is one
        return self

    def __format__(self, _: str) -> str:
        return self.words


class Progress(keras.callbacks.ProgbarLogger):  # type: ignore[misc]
    """Keras' own bar; samples per second, parts, bytes held and allowed stand beside the metrics.

    They are passed to the bar alone: `History` and other callbacks see Keras' own logs.
    """

    async_safe = True
    """As Keras takes its own bar to be; otherwise every batch would wait for it."""

    def __init__(self, gauge: Gauge) -> None:
        super().__init__()
        self._gauge = gauge
        self._pace = Pace()
        self._shown: dict[str, Worded] = {}
        self._looked_at = 0.0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._pace, self._shown, self._looked_at = Pace(), {}, 0.0
        super().on_epoch_begin(epoch, logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        now = time.perf_counter()
        if now - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = now
            self._look(batch + 1)
        super().on_train_batch_end(batch, {**(logs or {}), **self._shown})

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._look(self.seen)
        super().on_epoch_end(epoch, {**(logs or {}), **self._shown})

    def _look(self, batches: int) -> None:
        words = self._gauge.reading(self._pace.at(batches)).words()
        self._shown = {name: Worded(text) for name, text in words.items()}


def with_progress(callbacks: Any, gauge: Gauge) -> Any:
    """Return callbacks with a bar that shows memory, unless there is one already."""
    if isinstance(callbacks, keras.callbacks.CallbackList):
        return callbacks
    given = keras.tree.flatten(callbacks) if callbacks else []
    shown = any(isinstance(one, keras.callbacks.ProgbarLogger) for one in given)
    return given if shown else [*given, Progress(gauge)]
