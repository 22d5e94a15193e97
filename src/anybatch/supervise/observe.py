"""What the child holds and says, looked at from outside."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from anybatch.handover import Pulse, read_pulse
from anybatch.memory import (
    Group,
    fairly_held_bytes,
    groups_of,
    held_together,
    numbers_by_name,
    text_of,
    tree_of,
)

_VMSTAT = Path("/proc/vmstat")
_STOPPED = {"T", "t"}
_UNLIMITED = "unlimited"
_ASLEEP_SECONDS = 5.0
# finding them costs one read per process of the whole machine, weighing them one for each
_LOOK_FOR_CHILDREN_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Sample:
    """One look."""

    seconds: float
    """Since the supervisor started."""
    held_bytes: int
    step: int
    part: int
    pressure: float = 0.0
    """Which share of the last ten seconds somebody waited for memory."""


def descendants() -> list[int]:
    """Return all living processes below this one."""
    return tree_of(os.getpid())[1:]


class Scale:
    """Weighs the child and its children: one read of their group, or one for each of them."""

    def __init__(self, group: Group | None) -> None:
        self._group = group
        self._known: list[int] = []
        self._looked = -_LOOK_FOR_CHILDREN_SECONDS

    def held_bytes(self, now_seconds: float) -> int:
        """Return what they hold together."""
        in_group = None if self._group is None else self._group.anonymous_bytes()
        if in_group is not None:
            return in_group
        if now_seconds - self._looked >= _LOOK_FOR_CHILDREN_SECONDS:
            self._known, self._looked = descendants(), now_seconds
        return held_together(self._known).counted_bytes

    def fairly_held_bytes(self) -> int | None:
        """Return the same with every page counted once; None where nobody shares any."""
        several = len(self._known) > 1
        return fairly_held_bytes(self._known) if several else None


def machine_kills() -> int | None:
    """Return how many processes the kernel has killed for memory since the machine started."""
    return numbers_by_name(_VMSTAT).get("oom_kill")


def kills_around() -> int | None:
    """Return the same for the memory group that this process is in; None if nobody may read it."""
    groups = groups_of()
    return groups[0].kills_here() if groups else None


def boot() -> str:
    """Return a text that is another one after every start of the machine."""
    return (text_of(Path("/proc/sys/kernel/random/boot_id")) or "").strip()


def restarted_since(boot_then: str, seconds: float) -> bool:
    """Whether the machine was started after a moment at which `boot` returned `boot_then`.

    A folder on a volume may have come to another machine, which says nothing of the first one: that had run
    for a while by then, as a rule.
    """
    if not boot_then or boot() in {"", boot_then}:
        return False
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) > seconds


def address_fraction(process: int) -> float:
    """Return the largest share of `ulimit -v` that was ever used; 0 without such a limit."""
    limits = text_of(Path("/proc") / str(process) / "limits") or ""
    line = next((line for line in limits.splitlines() if line.startswith("Max address space")), "")
    soft = line.split()[3] if len(line.split()) > 3 else _UNLIMITED
    if not soft.isdigit():
        return 0.0
    return numbers_by_name(Path("/proc") / str(process) / "status").get("VmPeak", 0) * 1024 / int(soft)


def is_stopped(process: int) -> bool:
    """Whether somebody has halted the process: then its silence means nothing."""
    fields = (text_of(Path("/proc") / str(process) / "stat") or "").rpartition(")")[2].split()
    return bool(fields) and fields[0] in _STOPPED


class Listener:
    """Follows the child's heartbeat, and how long it has been silent while training."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.pulse: Pulse | None = None
        self.first_step: int | None = None
        self._quiet_since: float | None = None
        self._looked: float | None = None

    def listen(self, now_seconds: float, *, halted: bool) -> float:
        """Return for how many seconds training has been silent.

        While nobody looked, both were halted: by Ctrl-Z, or with the whole container.
        """
        missed, self._looked = now_seconds - (self._looked or now_seconds), now_seconds
        if missed > _ASLEEP_SECONDS and self._quiet_since is not None:
            self._quiet_since += missed
        pulse = read_pulse(self._folder)
        if pulse is not None and (self.pulse is None or pulse.beat != self.pulse.beat):
            self.pulse, self._quiet_since = pulse, now_seconds
            if self.first_step is None and not pulse.planning:
                self.first_step = pulse.step
        if self.pulse is None or not self.pulse.training or halted or self._quiet_since is None:
            self._quiet_since = now_seconds
        return now_seconds - self._quiet_since


def pressure_in(group: Group | None) -> float:
    """Return which share of the last ten seconds somebody waited for memory, from 0 to 1."""
    own = None if group is None else text_of(group.folder / "memory.pressure")
    text = own or text_of(Path("/proc/pressure/memory")) or ""
    fields = dict(field.split("=") for field in text.partition("\n")[0].split()[1:] if "=" in field)
    return float(fields.get("avg10", 0)) / 100
