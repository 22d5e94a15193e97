"""A `tf.data.Dataset` that can be taken up again, by the checkpoint of its own iterator."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

import numpy as np
import tensorflow as tf

from anybatch.train.checkpoint_files import PASSING_PREFIX
from anybatch.train.checkpoint_passes import Arrays
from anybatch.train.inputs import Part, whole

_NAME = "input"
_BEHIND = f"{_NAME}-behind"
"""How many batches are to be read past before the place is reached."""

_ORDERS = re.compile(rb"@@epoch_num_random_samples")
"""Stands in a state once for every `shuffle` that tells how many orders were drawn."""


class DatasetPass:
    """One pass over a dataset.

    TensorFlow writes an iterator's state (buffers of `shuffle` and `prefetch` included) into files only; they
    become arrays, so that they are checked, and appear, with the rest of the state.

    A dataset counts the orders it has drawn, in one place for all its passes, and a state does not tell that
    count once threads have read ahead to where `shuffle` ends: the passes behind it would come in another
    order. Then an earlier state is given, and how many batches were taken since.
    """

    def __init__(self, dataset: Any) -> None:
        self._iterator = iter(dataset)
        self._looked_at: list[Any] = []
        self._known: Arrays = {}
        self._since = 0

    def __iter__(self) -> "DatasetPass":
        return self

    def __next__(self) -> Iterator[Part]:
        batch = self._looked_at.pop() if self._looked_at else next(self._iterator)
        self._since += 1
        return whole(batch)

    def remember_beginning(self) -> None:
        """Write down where it begins, in no time, as all buffers are empty."""
        if not self._known:
            try:
                self._known = self._written(Path(gettempdir()))
            except OSError:
                # whoever wants to keep it asks again, and is told why not
                self._known = {}

    def look(self) -> Any:
        """Return the first batch, which is still to come; None if there is none."""
        self.remember_beginning()
        self._looked_at = [batch for batch in [next(self._iterator, None)] if batch is not None]
        return self._looked_at[0] if self._looked_at else None

    def kept(self, folder: Path) -> Arrays:
        """Return where the pass stands; an `OSError` where it cannot tell, or there is no room."""
        now = self._written(folder)
        if not self._looked_at and _orders_told(self._known) <= _orders_told(now):
            self._known, self._since = now, 0
        return {**self._known, _BEHIND: np.array(self._since)}

    def _written(self, folder: Path) -> Arrays:
        with _passing(folder) as prefix:
            try:
                self._checkpoint.write(str(prefix))
            except tf.errors.OpError as error:
                raise OSError(error.message) from None
            return _mapped(prefix)

    def go_on_from(self, arrays: Arrays, folder: Path) -> None:
        """Stand where another iterator stood; a `ValueError` if it was one over other data."""
        with _passing(folder) as prefix:
            for name in arrays:
                if name.startswith(f"{_NAME}/"):
                    arrays[name].tofile(prefix.with_name(Path(name).name))
            self._known = _mapped(prefix)
            try:
                self._checkpoint.read(str(prefix)).assert_consumed()
            except (tf.errors.OpError, AssertionError) as error:
                raise ValueError(str(error)) from None
        self._since = int(arrays[_BEHIND]) if _BEHIND in arrays else 0
        for _ in range(self._since):
            next(self._iterator, None)

    @property
    def _checkpoint(self) -> Any:
        return tf.train.Checkpoint(iterator=self._iterator)


@contextmanager
def _passing(folder: Path) -> Iterator[Path]:
    """Give a place for files that are there for a moment: not in a temporary folder, which may be memory."""
    with TemporaryDirectory(prefix=PASSING_PREFIX, dir=folder) as place:
        yield Path(place) / _NAME


def _mapped(prefix: Path) -> Arrays:
    """Return files as arrays: the memory is the kernel's to take back, and the files may go."""
    files = sorted(prefix.parent.glob(f"{_NAME}.*"))
    return {f"{_NAME}/{file.name}": np.memmap(file, np.uint8, "r") for file in files}


def _orders_told(state: Arrays) -> int:
    """Return how many `shuffle` tell of their orders."""
    return sum(1 for array in state.values() for _ in _ORDERS.finditer(array.data))
