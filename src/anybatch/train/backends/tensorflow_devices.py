"""Accelerators and what TensorFlow's allocator holds on them.

A GPU could not be had where this was written. What was run instead is the same allocator on the CPU, which
`TF_CPU_ALLOCATOR_USE_BFC=1` switches on: it keeps the same statistics, and then counts as a device.
"""

import os
from functools import cache
from typing import Self

import keras
import tensorflow as tf

from anybatch.memory import PRODUCTS_VARIABLE

_ON_THE_CPU, _ITS_LIMIT = "TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB"
_CPU = "CPU:0"
_LARGE_BYTES = 1 << 20
_SETTINGS = ("TF_CPU_", "TF_ENABLE_ONEDNN", "TF_ONEDNN", "MALLOC_", PRODUCTS_VARIABLE)


def devices_with_memory() -> list[str]:
    """Return the devices that have memory of their own."""
    on_the_cpu = [_CPU] if os.environ.get(_ON_THE_CPU) == "1" else []
    return on_the_cpu + [f"GPU:{at}" for at, _ in enumerate(tf.config.list_logical_devices("GPU"))]


def peaks_depend_on() -> list[str]:
    """Return what the same model's peak depends on: versions, and which allocator there is."""
    settings = [f"{name}={value}" for name, value in os.environ.items() if name.startswith(_SETTINGS)]
    return [tf.__version__, keras.__version__, f"keeps={host_pool() is not None}", *sorted(settings)]


@cache
def host_pool() -> str | None:
    """Return the name by which the host's allocator says what it holds, if it keeps what it has had.

    On processors with instructions for neural networks oneDNN is on, with an allocator that does; it alone
    counts what it hands out.
    """
    try:
        before_bytes = device_held_bytes(_CPU)
        # what is small it leaves to the C library
        block = tf.zeros(_LARGE_BYTES, tf.uint8)
        counted = device_held_bytes(_CPU) - before_bytes >= _LARGE_BYTES
        del block
    except ValueError:
        return None
    return _CPU if counted else None


def device_limit_bytes(device: str) -> int | None:
    """Return what the allocator may take on a device, if it says."""
    if device == _CPU:
        limit = os.environ.get(_ITS_LIMIT)
        return None if limit is None else int(limit) << 20
    from tensorflow.python.client import device_lib

    limits = {one.name.removeprefix("/device:"): one.memory_limit for one in device_lib.list_local_devices()}
    return limits.get(device)


def device_held_bytes(device: str) -> int:
    """Return what tensors and workspaces take on a device now."""
    return int(tf.config.experimental.get_memory_info(device)["current"])


class device_watch:  # noqa: N801 - used like a function, as the other backends will have it
    """Inside the `with` block, the peak of what was held on a device."""

    def __init__(self, device: str) -> None:
        self._device = device
        self.peak_bytes = 0

    def __enter__(self) -> Self:
        tf.config.experimental.reset_memory_stats(self._device)
        return self

    def __exit__(self, *_: object) -> None:
        self.peak_bytes = int(tf.config.experimental.get_memory_info(self._device)["peak"])
