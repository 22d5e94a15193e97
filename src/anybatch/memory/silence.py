"""Allocations that fail without a word, and how to know that none did.

Where allocations can fail, TensorFlow's matrix products on the processor may be wrong: both of its ways to
make them have oneDNN multiply blocks, which takes some megabytes to pack them, and neither looks whether it
got them. The product is then whatever memory held before. Of 48 trainings under a limit on address space
four had been refused such a room, and exactly those four ended with other weights.
"""

import os

from anybatch.memory.ceilings import AddressSpace, allocations_may_fail

PRODUCTS_VARIABLE = "TENSORFLOW_USE_CUSTOM_CONTRACTION_KERNEL"
"""Read by TensorFlow when it multiplies matrices for the first time."""
ONEDNN_VARIABLE = "TF_ENABLE_ONEDNN_OPTS"
"""Read by TensorFlow when it is imported."""
_ALOUD = {PRODUCTS_VARIABLE: ("false", "0"), ONEDNN_VARIABLE: ("0",)}
NEAR_BYTES = 16 << 20
"""No product needs as much for its blocks: up to 2.2 MB for each of two threads were seen."""


def loud_environment() -> dict[str, str]:
    """Return the variables with which TensorFlow multiplies by code that says so if it gets no memory.

    None where allocations do not fail: that code is slower.
    """
    return {name: values[0] for name, values in _ALOUD.items()} if allocations_may_fail() else {}


def are_told() -> bool:
    """Return whether every allocation that fails is told, by an exception or the end of the process."""
    aloud = all(os.environ.get(name) in values for name, values in _ALOUD.items())
    return aloud or not allocations_may_fail()


class SilenceWatch:
    """Knows whether address space came so near to its limit that room may have been refused in silence."""

    def __init__(self) -> None:
        self._room_bytes: int | None = None

    def came_near(self) -> bool:
        """Return whether that happened since the last look. A microsecond where there is no limit."""
        space = AddressSpace.of_this_process()
        if space is None:
            return False
        room_bytes = space.limit_bytes - space.peak_bytes
        fell = self._room_bytes is None or room_bytes < self._room_bytes
        self._room_bytes = room_bytes
        return fell and room_bytes < NEAR_BYTES and not are_told()
