"""Limits that no plan can keep to, as facts with the way out."""

from anybatch.errors import AnybatchError
from anybatch.units import size


class AboveLimit(AnybatchError, MemoryError):
    """The process holds more than its limit before training has begun."""

    def __init__(self, held_bytes: int, limit_bytes: int) -> None:
        super().__init__(held_bytes, limit_bytes)
        self.held_bytes = held_bytes
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        held_already = size(self.held_bytes, up=True)
        return (
            f"the process already holds {held_already} and may hold {size(self.limit_bytes)}; "
            f"let go of something, start a new process, or allow more than {held_already}"
        )


class OneSampleTooLarge(AnybatchError, MemoryError):
    """Not even a part of one sample fits."""

    def __init__(self, needed_bytes: int, limit_bytes: int) -> None:
        super().__init__(needed_bytes, limit_bytes)
        self.needed_bytes = needed_bytes
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        needed = size(self.needed_bytes, up=True)
        return (
            f"an update of one sample at a time takes {needed} and the limit is {size(self.limit_bytes)}; "
            f"a limit of {needed}, a smaller model or an optimizer with fewer slots would do"
        )
