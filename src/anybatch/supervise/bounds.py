"""How much a supervised script may hold, and how much its memory group."""

from dataclasses import dataclass

from anybatch.memory import allowance, held

_OF_THE_KERNEL = 64
_OF_THE_KERNEL_AT_LEAST = 8 << 20


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the script is told, and what its group is given: page tables and the like count there."""

    limit_bytes: int
    group_limit_bytes: int


def bounds_here(wanted_bytes: int | None) -> Bounds:
    """Return the bounds of a script that this process starts; `wanted_bytes` as the user asked, if at all."""
    return bounds_within(allowance().limit_bytes - held().counted_bytes, wanted_bytes)


def bounds_within(allowed_bytes: int, wanted_bytes: int | None) -> Bounds:
    """Return bounds of which none is above what is allowed.

    >>> bounds_within(1 << 30, 1 << 29)
    Bounds(limit_bytes=536870912, group_limit_bytes=545259520)
    >>> bounds_within(1 << 30, 1 << 31)
    Bounds(limit_bytes=1073741824, group_limit_bytes=1073741824)
    """
    limit = min(allowed_bytes, wanted_bytes or allowed_bytes)
    beyond = max(limit // _OF_THE_KERNEL, _OF_THE_KERNEL_AT_LEAST)
    return Bounds(limit, min(allowed_bytes, limit + beyond))
