"""What Linux says about a process. Elsewhere the answer is None, and the report says so."""

import os
import resource
from pathlib import Path

# what cannot be dropped and read again: page cache and mapped files are not among it
ANONYMOUS = (b"RssAnon:", b"RssShmem:", b"VmSwap:")


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
        return self._sum_of(ANONYMOUS)

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
