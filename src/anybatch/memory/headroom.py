"""Whether a part will fit into a limited address space, by what parts before it took.

Running out of it is better foreseen than met: four of five exhaustions under a limit on it ended the process,
because C++ code that packs blocks of a matrix product cannot be told that there is no memory.
"""

from anybatch.memory.ceilings import AddressSpace

CUSHION_BYTES = 24 << 20
"""What is to be left when a part takes most, for blocks of products and for what others need meanwhile; where
there is less than twice as much, half of it."""


class Headroom:
    """Learns what a row takes, from the parts that go through. Costs nothing where there is no limit."""

    def __init__(self) -> None:
        self._highest_bytes: int | None = None
        self._bytes_per_row = 0.0

    def missing_bytes(self, rows: int) -> int:
        """Return how much too little there is for so many rows, by all that is known; 0 if they fit."""
        space = AddressSpace.of_this_process()
        if space is None:
            return 0
        if self._highest_bytes is None:
            self._highest_bytes = space.peak_bytes
        if not self._bytes_per_row:
            return 0
        free_bytes = max(0, space.limit_bytes - space.taken_bytes)
        cushion_bytes = min(CUSHION_BYTES, free_bytes // 2)
        return max(0, round(rows * self._bytes_per_row) + cushion_bytes - free_bytes)

    def went_through(self, rows: int) -> None:
        """Note that so many rows did: if more was taken than ever before, it was for them."""
        space = AddressSpace.of_this_process()
        if space is None or self._highest_bytes is None:
            return
        if space.peak_bytes > self._highest_bytes:
            self._highest_bytes = space.peak_bytes
            self._bytes_per_row = (space.peak_bytes - space.taken_bytes) / rows
