"""`memory_log`: what training holds and how fast it is, for TensorBoard."""

import os
from typing import Any

from anybatch.memory import allowance
from anybatch.train.backends import loaded_backend
from anybatch.train.gauge import Gauge
from anybatch.train.memories import HostMemory


def memory_log(log_dir: str | os.PathLike[str], *, update_freq: str | int = "epoch") -> Any:
    """Return a Keras callback that logs memory and speed for TensorBoard: what the progress bar shows.

    `update_freq` is that of `keras.callbacks.TensorBoard`: after every epoch, every `"batch"`, or every so
    many batches. Logged by the number of the update are samples per second, parts per batch, and the bytes
    that the process holds, held at most since training began, and may hold.

    >>> import keras, numpy as np, tempfile
    >>> from anybatch import fit
    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> with tempfile.TemporaryDirectory() as log_dir:
    ...     history = fit(model, np.ones((8, 3)), np.ones((8, 1)), verbose=0, callbacks=[memory_log(log_dir)])
    ...     [file.split(".")[-1] for file in os.listdir(log_dir)]
    ['v2']
    """
    outside = Gauge([HostMemory(allowance().limit_bytes)], None, lambda: None)
    return loaded_backend().MemoryLog(os.fspath(log_dir), _every(update_freq), outside)


def _every(update_freq: str | int) -> int | None:
    if update_freq in {"batch", "epoch"}:
        return 1 if update_freq == "batch" else None
    if isinstance(update_freq, bool) or not isinstance(update_freq, int) or update_freq < 1:
        raise ValueError(f"update_freq={update_freq!r}; give 'epoch', 'batch' or a number of batches from 1")
    return update_freq
