"""The most that this process held during a stretch of work."""

import threading
from pathlib import Path
from typing import Self

from anybatch.memory.held import held
from anybatch.memory.kernel_files import ROOT, numbers_by_name

_RESET_PEAK = "5"
_SAMPLE_SECONDS = 0.005


class PeakWatch:
    """Inside the `with` block, the peak of anonymous, swapped and shared bytes.

    Where the kernel lets the process reset its own high-water mark nothing is missed and nothing is spent;
    elsewhere a thread looks every 5 ms.

    >>> with PeakWatch() as watch:
    ...     block = bytearray(50 << 20)
    ...     del block
    >>> watch.peak_bytes - watch.before_bytes > 40 << 20
    True
    """

    def __init__(self, *, root: Path = ROOT) -> None:
        self._root = root
        self._ended = threading.Event()
        self._sampler: threading.Thread | None = None
        self.before_bytes = 0
        self.peak_bytes = 0

    def __enter__(self) -> Self:
        before = held(root=self._root)
        self.before_bytes = self.peak_bytes = before.counted_bytes
        self._file_bytes = before.file_bytes
        if not self._reset():
            self._sampler = threading.Thread(target=self._sample, name="anybatch-peak", daemon=True)
            self._sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._sampler is not None:
            self._sampler.join()
        self.look()

    def look(self) -> int:
        """Return the peak so far."""
        now = held(root=self._root)
        self._file_bytes = min(self._file_bytes, now.file_bytes)
        self.peak_bytes = max(self.peak_bytes, now.counted_bytes)
        if self._sampler is None:
            self.peak_bytes = max(self.peak_bytes, self._marked() + now.swapped_bytes)
        return self.peak_bytes

    def _reset(self) -> bool:
        try:
            (self._root / "proc" / "self" / "clear_refs").write_text(_RESET_PEAK)
        except OSError:
            return False
        return self._high_water_bytes() > 0

    def _marked(self) -> int:
        # the kernel's mark has file pages in it: taking off the fewest seen leaves an upper bound
        return self._high_water_bytes() - self._file_bytes

    def _high_water_bytes(self) -> int:
        return numbers_by_name(self._root / "proc" / "self" / "status").get("VmHWM", 0) * 1024

    def _sample(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            self.peak_bytes = max(self.peak_bytes, held(root=self._root).counted_bytes)
