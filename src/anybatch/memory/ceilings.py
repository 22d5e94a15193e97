"""Limits under which an allocation fails, and nobody is killed: `ulimit -v` and the like."""

import re
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from anybatch.memory.kernel_files import ROOT, number_in, numbers_by_name, text_of

_KB = 1024
_BY_NAME = {"Max address space": ("`ulimit -v`", "VmSize"), "Max data size": ("`ulimit -d`", "VmData")}
_COUNTED = re.compile(r"^(Max [a-z ]+?) {2,}(\d+) ", re.MULTILINE)
_NO_OVERCOMMIT = 2


@dataclass(frozen=True, slots=True)
class Ceiling:
    """How far the mappings of a process may grow, touched or not."""

    limit_bytes: int
    taken_bytes: int
    source: str


def ceilings(process: int | str = "self", *, root: Path = ROOT) -> Iterator[Ceiling]:
    """Yield the limits of one process that are set. Two small reads."""
    folder = root / "proc" / str(process)
    found = [
        (_BY_NAME[name], int(limit))
        for name, limit in _COUNTED.findall(text_of(folder / "limits") or "")
        if name in _BY_NAME
    ]
    taken = numbers_by_name(folder / "status") if found else {}
    for (source, line), limit_bytes in found:
        yield Ceiling(limit_bytes, taken.get(line, 0) * _KB, source)


def allocations_may_fail(process: int | str = "self", *, root: Path = ROOT) -> bool:
    """Return whether a process can be told that there is no memory, instead of being killed for it.

    >>> isinstance(allocations_may_fail(), bool)
    True
    """
    strict = number_in(root / "proc" / "sys" / "vm" / "overcommit_memory") == _NO_OVERCOMMIT
    return strict or any(ceilings(process, root=root))


@dataclass(frozen=True, slots=True)
class AddressSpace:
    """The limited address space of this process: what it may take, takes, and took at most."""

    limit_bytes: int
    taken_bytes: int
    peak_bytes: int

    @classmethod
    def of_this_process(cls) -> "AddressSpace | None":
        """Return what the kernel says now; None, after a microsecond, if there is no limit."""
        limit_bytes, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit_bytes == resource.RLIM_INFINITY:
            return None
        told = numbers_by_name(ROOT / "proc" / "self" / "status")
        return cls(limit_bytes, told.get("VmSize", 0) * _KB, told.get("VmPeak", 0) * _KB)
