"""Whether an update has begun that did not end: then it must not be made once more."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from anybatch.train.exhaustion import in_one_line, is_exhaustion
from anybatch.train.refusals import UpdateCutShort


class Begun:
    """Counts updates twice: in their graph, right before the first weight changes, and here, when they end.

    Room for the whole update is taken before, so it ends. But others of the process take memory as well.
    """

    def __init__(self, *, counts: bool) -> None:
        self._ended = 0
        with tf.init_scope(), tf.device("CPU:0"):
            self._counter = tf.Variable(0, dtype=tf.int64, trainable=False) if counts else None

    def marked(self, before: list[Any]) -> list[Any]:
        """Return what has to be there before the first weight changes."""
        if self._counter is None:
            return before
        with tf.control_dependencies(before):
            return [self._counter.assign_add(1, read_value=False)]

    @contextmanager
    def watched(self, *, undone: bool) -> Iterator[None]:
        """Raise `UpdateCutShort` if memory runs out in an update. `undone`: it was put back as a whole."""
        try:
            yield
        except BaseException as error:
            begun = self._ended if self._counter is None else int(self._counter.numpy())
            cut_short = begun != self._ended and not undone and is_exhaustion(error)
            # whatever came of it, Ctrl-C included, the next update begins behind it
            self._ended = begun
            if cut_short:
                raise UpdateCutShort(in_one_line(error)) from None
            raise
        self._ended += 1
