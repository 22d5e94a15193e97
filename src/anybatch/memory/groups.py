"""Memory groups (cgroups), both versions: where they lie, what they allow, what they counted."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from anybatch.memory.kernel_files import ROOT, number_in, numbers_by_name, text_of

# version 1 writes "no limit" as the largest multiple of a page
_NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class Group:
    """One memory group; `top` is the folder above which nothing can be seen."""

    folder: Path
    top: Path
    version: int

    def limit_bytes(self) -> int | None:
        """Return what this group alone allows: in version 2 also where the kernel begins to slow it down."""
        names = ("memory.max", "memory.high") if self.version == 2 else ("memory.limit_in_bytes",)
        found = [number_in(self.folder / name) for name in names]
        return min((limit for limit in found if limit is not None and limit < _NO_LIMIT), default=None)

    def used_bytes(self) -> int | None:
        """Return what cannot be had back by dropping file pages.

        Those that are called active as well: shards that are read in every epoch become so, and the kernel
        drops them all the same before it kills anybody.
        """
        used = number_in(self.folder / self._name("memory.usage_in_bytes", "memory.current"))
        if used is None:
            return None
        pages = numbers_by_name(self.folder / "memory.stat")
        dropped = (("total_inactive_file", "inactive_file"), ("total_active_file", "active_file"))
        return max(0, used - sum(pages.get(self._name(*names), 0) for names in dropped))

    def anonymous_bytes(self) -> int | None:
        """Return the anonymous, shared and swapped bytes of all its processes, each page once."""
        pages = numbers_by_name(self.folder / "memory.stat")
        if self.version == 1:
            names = ("total_rss", "total_shmem", "total_swap")
            return sum(pages.get(name, 0) for name in names) if "total_rss" in pages else None
        swapped = number_in(self.folder / "memory.swap.current") or 0
        return pages["anon"] + pages.get("shmem", 0) + swapped if "anon" in pages else None

    def processes(self) -> list[int]:
        """Return the processes that are in this very group."""
        return [int(one) for one in (text_of(self.folder / "cgroup.procs") or "").split()]

    def peak_bytes(self) -> int | None:
        """Return the most that was ever charged, file pages included."""
        return number_in(self.folder / self._name("memory.max_usage_in_bytes", "memory.peak"))

    def kills(self) -> int | None:
        """Return how many processes of this group the kernel has killed for memory."""
        file = self.folder / self._name("memory.oom_control", "memory.events")
        return numbers_by_name(file).get("oom_kill")

    def kills_here(self) -> int | None:
        """Return the same without those of groups below, where the kernel tells them apart."""
        file = self.folder / self._name("memory.oom_control", "memory.events.local")
        found = numbers_by_name(file).get("oom_kill")
        return self.kills() if found is None else found

    def with_ancestors(self) -> Iterator["Group"]:
        """Yield this group and every one around it: each of them can refuse."""
        folder = self.folder
        while True:
            yield Group(folder, self.top, self.version)
            if folder == self.top or self.top not in folder.parents:
                return
            folder = folder.parent

    def _name(self, first: str, second: str) -> str:
        return first if self.version == 1 else second


def groups_of(process: int | str = "self", *, root: Path = ROOT) -> list[Group]:
    """Return the memory group of a process and all around it, innermost first; none where there are none.

    A machine can have both versions mounted; memory is accounted in one of them, and that one is taken.
    """
    own = text_of(root / "proc" / str(process) / "cgroup") or ""
    mounts = text_of(root / "proc" / str(process) / "mountinfo") or ""
    for version, path in _memory_paths(own):
        for mount in _mounts(mounts, version):
            return list(_placed(root, mount, path, version).with_ancestors())
    return []


def _memory_paths(own: str) -> Iterator[tuple[int, str]]:
    """Yield version and path from lines such as `4:memory:/a/b` and `0::/a/b`, the accounting one first."""
    lines = [line.split(":", 2) for line in own.splitlines() if line.count(":") >= 2]
    yield from ((1, path) for _, controllers, path in lines if "memory" in controllers.split(","))
    yield from ((2, path) for number, controllers, path in lines if (number, controllers) == ("0", ""))


@dataclass(frozen=True, slots=True)
class _Mount:
    shows: str
    at: str


def _mounts(mountinfo: str, version: int) -> Iterator[_Mount]:
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        options = kind[2].split(",")
        if (version == 2 and kind[0] == "cgroup2") or (kind[0] == "cgroup" and "memory" in options):
            yield _Mount(shows=_unescaped(fields[3]), at=_unescaped(fields[4]))


def _placed(root: Path, mount: _Mount, path: str, version: int) -> Group:
    """Return where a group is to be seen: a container often shows its own group as the top of all."""
    top = root / mount.at.lstrip("/")
    shown = mount.shows.rstrip("/")
    inside = path[len(shown) :] if (path + "/").startswith(shown + "/") else ""
    folder = top / inside.lstrip("/")
    seen = ".." not in Path(inside).parts and folder.is_dir()
    return Group(folder if seen else top, top, version)


def _unescaped(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), field)
