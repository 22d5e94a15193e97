"""How many bytes this process may hold: the tightest of its own limits, its memory groups and the machine."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from anybatch.memory.ceilings import ceilings
from anybatch.memory.groups import groups_of
from anybatch.memory.held import held
from anybatch.memory.kernel_files import ROOT, numbers_by_name
from anybatch.units import size

_KB = 1024
_MACHINE = "the machine"
_MAPPED_FOR_NOTHING_BYTES = 96 << 20
"""Stacks of threads and heaps of the C library are mapped in one piece, and hardly touched."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one level (a limit of its own, a group, or the machine) leaves to this process."""

    limit_bytes: int
    """What this process may hold: the level's limit, less what others hold within it."""
    whole_bytes: int
    """The level's own limit, for everybody in it."""
    source: str

    @property
    def is_of_the_process(self) -> bool:
        """Whether somebody has limited this process or its container."""
        return self.source != _MACHINE

    def __str__(self) -> str:
        return f"{size(self.limit_bytes)} ({self.source} allows {size(self.whole_bytes)})"


def allowance(process: int | str = "self", *, root: Path = ROOT) -> Allowance:
    """Return the tightest allowance over the process's own limits, its memory groups and the machine.

    >>> 0 < allowance().limit_bytes <= allowance().whole_bytes
    True
    """
    own_bytes = held(process, root=root).counted_bytes
    levels = [_left(own_bytes, *level) for level in _levels(process, root)]
    return min(levels, key=lambda level: level.limit_bytes)


def cacheable_bytes(process: int | str = "self", *, root: Path = ROOT) -> int:
    """Return what the page cache could hold for this process: all that nobody's own memory takes.

    >>> cacheable_bytes() > 0
    True
    """
    found = [numbers_by_name(root / "proc" / "meminfo").get("MemAvailable", 2**43 // _KB) * _KB]
    for group in groups_of(process, root=root):
        limit = group.limit_bytes()
        if limit is not None:
            found.append(max(0, limit - (group.anonymous_bytes() or 0)))
    return min(found)


def _left(own_bytes: int, whole_bytes: int, free_bytes: int, source: str) -> Allowance:
    return Allowance(min(whole_bytes, own_bytes + max(0, free_bytes)), whole_bytes, source)


def _levels(process: int | str, root: Path) -> Iterator[tuple[int, int, str]]:
    """Yield limit, free bytes and name of the machine and of every other level that has a limit."""
    machine = numbers_by_name(root / "proc" / "meminfo")
    total = machine.get("MemTotal", 2**43) * _KB
    yield total, machine.get("MemAvailable", total // _KB) * _KB, _MACHINE
    for ceiling in ceilings(process, root=root):
        free_bytes = ceiling.limit_bytes - ceiling.taken_bytes - _MAPPED_FOR_NOTHING_BYTES
        yield ceiling.limit_bytes, free_bytes, ceiling.source
    for group in groups_of(process, root=root):
        limit = group.limit_bytes()
        if limit is not None:
            yield limit, limit - (group.used_bytes() or 0), f"the memory group {group.folder}"
