"""A `tf.data.Dataset` that can be taken up again, by the checkpoint of its own iterator."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import tensorflow as tf

from anybatch.train.checkpoint_files import PASSING_PREFIX
from anybatch.train.checkpoint_passes import Arrays
from anybatch.train.inputs import Part, whole

_NAME = "input"


class DatasetPass:
    """One pass over a dataset.

    TensorFlow writes an iterator's state (buffers of `shuffle` and `prefetch` included) into files only; they
    become arrays, so that they are checked, and appear, with the rest of the state.
    """

    def __init__(self, dataset: Any) -> None:
        self._iterator = iter(dataset)

    def __iter__(self) -> "DatasetPass":
        return self

    def __next__(self) -> Iterator[Part]:
        return whole(next(self._iterator))

    def kept(self, folder: Path) -> Arrays:
        """Return where the iterator stands; an `OSError` where it cannot tell, or there is no room."""
        with _passing(folder) as prefix:
            try:
                self._checkpoint.write(str(prefix))
            except tf.errors.OpError as error:
                raise OSError(error.message) from None
            # mapped: the memory is the kernel's to take back, and the files may go
            return {f"{_NAME}/{file.name}": np.memmap(file, np.uint8, "r") for file in _files_of(prefix)}

    def go_on_from(self, arrays: Arrays, folder: Path) -> None:
        """Stand where another iterator stood; a `ValueError` if it was one over other data."""
        with _passing(folder) as prefix:
            for name in arrays:
                if name.startswith(f"{_NAME}/"):
                    arrays[name].tofile(prefix.with_name(Path(name).name))
            try:
                self._checkpoint.read(str(prefix)).assert_consumed()
            except (tf.errors.OpError, AssertionError) as error:
                raise ValueError(str(error)) from None

    @property
    def _checkpoint(self) -> Any:
        return tf.train.Checkpoint(iterator=self._iterator)


@contextmanager
def _passing(folder: Path) -> Iterator[Path]:
    """Give a place for files that are there for a moment: not in a temporary folder, which may be memory."""
    with TemporaryDirectory(prefix=PASSING_PREFIX, dir=folder) as place:
        yield Path(place) / _NAME


def _files_of(prefix: Path) -> list[Path]:
    return sorted(prefix.parent.glob(f"{_NAME}.*"))
