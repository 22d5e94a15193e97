"""A memory group for the child alone, so that the child is killed and not its neighbours."""

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from anybatch.memory import ROOT, Group, groups_of, text_of

_LIMIT_FILES = {1: "memory.limit_in_bytes", 2: "memory.max"}
# swap would let the child outgrow its limit slowly instead of being killed at it
_SWAP_FILES = {1: "memory.memsw.limit_in_bytes", 2: "memory.swap.max"}
_REMOVAL_TRIES = 50
_PREFIX = "anybatch-"


@dataclass(frozen=True, slots=True)
class OwnGroup:
    """A group that this process has made below its own."""

    group: Group

    @property
    def entrance(self) -> Path:
        """The file into which a process writes its number to join."""
        return self.group.folder / "cgroup.procs"

    def kill_all(self) -> None:
        """End every process that is left in the group."""
        for process in self.group.processes():
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)

    def remove(self) -> None:
        """Let whoever is left go back to the group around, and remove this one."""
        around = self.group.folder.parent / "cgroup.procs"
        for process in self.group.processes():
            with suppress(OSError):
                around.write_text(str(process))
        for _ in range(_REMOVAL_TRIES):
            try:
                self.group.folder.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                # a process that was just killed is counted for a moment longer
                time.sleep(0.01)
            else:
                return


def own_group(limit_bytes: int, *, root: Path = ROOT) -> OwnGroup | str:
    """Return a new group with a limit, or why there cannot be one."""
    around = groups_of(root=root)
    if not around:
        return "there are no memory groups here"
    problem = "memory groups cannot be made here"
    for place in _places(around[0]):
        made = _made(place, limit_bytes)
        if isinstance(made, OwnGroup):
            return made
        problem = made
    return problem


def _places(own: Group) -> list[Group]:
    """Return the groups below which one may be made.

    In version 2 a group that holds processes cannot have limited ones below it: then beside it, under the
    same ancestors. Its own limit is respected all the same, because ours is never larger.
    """
    beside = Group(own.folder.parent, own.top, own.version)
    return [own, beside] if own.version == 2 and own.folder != own.top else [own]


def remove_abandoned(place: Path) -> None:
    """Remove the groups of supervisors that were killed: a name says whose it is, and a used one stays."""
    for folder in place.glob(f"{_PREFIX}*-*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            # the kernel refuses to remove a group that holds a process
            with suppress(OSError):
                folder.rmdir()


def _made(place: Group, limit_bytes: int) -> OwnGroup | str:
    remove_abandoned(place.folder)
    folder = place.folder / f"{_PREFIX}{os.getpid()}-{time.monotonic_ns()}"
    group = Group(folder, place.top, place.version)
    try:
        if place.version == 2:
            _let_children_be_limited(place)
        folder.mkdir()
    except OSError as error:
        return f"{place.folder}: {error.strerror}"
    try:
        _limit(group, limit_bytes)
    except OSError as error:
        OwnGroup(group).remove()
        return f"{folder}: {error.strerror}"
    return OwnGroup(group)


def _let_children_be_limited(place: Group) -> None:
    control = place.folder / "cgroup.subtree_control"
    if "memory" not in (text_of(control) or "").split():
        control.write_text("+memory")


def _limit(group: Group, limit_bytes: int) -> None:
    (group.folder / _LIMIT_FILES[group.version]).write_text(str(limit_bytes))
    with suppress(OSError):
        # absent where the kernel does not account for swap
        swap = group.folder / _SWAP_FILES[group.version]
        if swap.exists():
            swap.write_text(str(limit_bytes if group.version == 1 else 0))
