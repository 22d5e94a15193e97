"""What Linux says about a process. Elsewhere the answer is None, and the report says so."""

import os
import resource
import time
from contextlib import suppress
from pathlib import Path

# what cannot be dropped and read again: page cache and mapped files are not among it
PRIVATE, SHARED = (b"RssAnon:", b"VmSwap:"), (b"RssShmem:",)
FAMILY_KNOWN_SECONDS = 0.1


class StatusFile:
    """`/proc/PID/status`, kept open: a sample costs one read, about 20 us."""

    def __init__(self, pid: int | str = "self") -> None:
        try:
            self._descriptor: int | None = os.open(f"/proc/{pid}/status", os.O_RDONLY)
        except OSError:
            self._descriptor = None

    def close(self) -> None:
        """Give the descriptor back."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def anonymous_bytes(self) -> int | None:
        """Return the anonymous memory held now; None once the process is gone."""
        return self._sum_of(PRIVATE + SHARED)

    def shared_bytes(self) -> int:
        """Return how much of it others may have mapped too."""
        return self._sum_of(SHARED) or 0

    def peak_resident_bytes(self) -> int | None:
        """Return the kernel's high-water mark, mapped file pages included."""
        return self._sum_of((b"VmHWM:",))

    def _sum_of(self, names: tuple[bytes, ...]) -> int | None:
        if self._descriptor is None:
            return None
        try:
            lines = os.pread(self._descriptor, 8192, 0).splitlines()
        except ProcessLookupError:
            return None
        found = [int(line.split()[1]) << 10 for line in lines if line.startswith(names)]
        return sum(found) if found else None


class Family:
    """A process and its descendants, asked together; who they are is looked up now and then only."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._members = {pid: StatusFile(pid)}
        self._known_until = 0.0

    def close(self) -> None:
        """Give the descriptors back."""
        for member in self._members.values():
            member.close()

    def anonymous_bytes(self) -> int | None:
        """Return what they hold together; what they share is counted once. None once all are gone."""
        if time.monotonic() > self._known_until:
            self._look_again()
        held = [member.anonymous_bytes() for member in self._members.values()]
        known = [size for size in held if size is not None]
        if len(known) < 2:
            return next(iter(known), None)
        shared = [member.shared_bytes() for member in self._members.values()]
        return sum(known) - sum(shared) + max(shared)

    def _look_again(self) -> None:
        found = set(descendants_of(self._pid))
        for gone in self._members.keys() - found - {self._pid}:
            self._members.pop(gone).close()
        self._members |= {pid: StatusFile(pid) for pid in found - self._members.keys()}
        self._known_until = time.monotonic() + FAMILY_KNOWN_SECONDS


def descendants_of(pid: int) -> list[int]:
    """Return the children of a process and theirs."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found + [further for child in found for further in descendants_of(child)]


def read_bytes_so_far() -> int | None:
    """Return how many bytes this process has got from read calls, the page cache included."""
    try:
        first = Path("/proc/self/io").read_text().splitlines()[0]
    except OSError:
        return None
    return int(first.removeprefix("rchar: "))


def page_faults_so_far() -> int:
    """Return how many pages were mapped in so far, with or without a disk."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_minflt + usage.ru_majflt
