"""What processes hold: anonymous, swapped and shared bytes. File pages are the kernel's to take back."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from anybatch.memory.kernel_files import ROOT, numbers_by_name, text_of

_KB = 1024


@dataclass(frozen=True, slots=True)
class Held:
    """The bytes of one process, or of several."""

    anonymous_bytes: int = 0
    swapped_bytes: int = 0
    shared_bytes: int = 0
    file_bytes: int = 0
    """Pages of mapped files: not counted, because the kernel can drop them."""

    @property
    def counted_bytes(self) -> int:
        """What counts against a limit. A folder under a tmpfs is memory too, and shows as shared."""
        return self.anonymous_bytes + self.swapped_bytes + self.shared_bytes

    def __add__(self, other: "Held") -> "Held":
        return Held(
            self.anonymous_bytes + other.anonymous_bytes,
            self.swapped_bytes + other.swapped_bytes,
            self.shared_bytes + other.shared_bytes,
            self.file_bytes + other.file_bytes,
        )


def held(process: int | str = "self", *, root: Path = ROOT) -> Held:
    """Return what one process holds; nothing if it is gone. One small read."""
    lines = numbers_by_name(root / "proc" / str(process) / "status")
    return Held(
        lines.get("RssAnon", 0) * _KB,
        lines.get("VmSwap", 0) * _KB,
        lines.get("RssShmem", 0) * _KB,
        lines.get("RssFile", 0) * _KB,
    )


def held_by_tree(process: int, *, root: Path = ROOT) -> Held:
    """Return what a process and all its descendants hold together."""
    return held_together(tree_of(process, root=root), root=root)


def held_together(processes: Iterable[int], *, root: Path = ROOT) -> Held:
    """Return what several processes hold.

    What they share is counted once, as much as the one that maps most of it: forked workers map the same.
    """
    each = [held(one, root=root) for one in processes]
    together = sum(each, Held())
    shared = max((one.shared_bytes for one in each), default=0)
    return Held(together.anonymous_bytes, together.swapped_bytes, shared, together.file_bytes)


def fairly_held_bytes(processes: Iterable[int], *, root: Path = ROOT) -> int | None:
    """Return what several processes hold, every page once; None where the kernel does not tell.

    Forked processes have the pages of their parent until they write to them, and each counts all of them as
    its own. Going through all pages takes milliseconds per gigabyte.
    """
    told = [numbers_by_name(root / "proc" / str(one) / "smaps_rollup") for one in processes]
    if not any("Pss_Anon" in lines for lines in told):
        return None
    names = ("Pss_Anon", "Pss_Shmem", "SwapPss")
    return sum(lines.get(name, 0) for lines in told for name in names) * _KB


def tree_of(process: int, *, root: Path = ROOT) -> list[int]:
    """Return a process and all its descendants, parents first."""
    told = _told_children(process, root)
    scanned = children_of(root=root) if told is None else {}
    found = [process]
    for one in found:
        found += scanned.get(one, []) if told is None else _told_children(one, root) or []
    return found


def _told_children(process: int, root: Path) -> list[int] | None:
    """Return the children as the kernel lists them, by thread; None where it was built without such lists."""
    try:
        threads = list((root / "proc" / str(process) / "task").iterdir())
    except OSError:
        return None
    lists = [text_of(thread / "children") for thread in threads]
    if all(one is None for one in lists):
        return None
    return [int(child) for one in lists for child in (one or "").split()]


def children_of(*, root: Path = ROOT) -> dict[int, list[int]]:
    """Return the children of every process. One small read per process on the machine."""
    children: dict[int, list[int]] = defaultdict(list)
    for process, parent in _parents(_processes(root), root):
        children[parent].append(process)
    return dict(children)


def _processes(root: Path) -> list[int]:
    try:
        return [int(entry.name) for entry in (root / "proc").iterdir() if entry.name.isdigit()]
    except OSError:
        return []


def _parents(processes: Iterable[int], root: Path) -> Iterable[tuple[int, int]]:
    for process in processes:
        # "pid (name) state parent …", and the name can hold brackets and blanks
        fields = (text_of(root / "proc" / str(process) / "stat") or "").rpartition(")")[2].split()
        if len(fields) > 1:
            yield process, int(fields[1])
