"""The memories that an update takes place in: the host's, and that of an accelerator."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from anybatch.memory import PeakWatch, held
from anybatch.train.backends import backend_of
from anybatch.units import parse_size


class Watched(Protocol):
    """What was seen inside a `with` block."""

    peak_bytes: int


class Memory(Protocol):
    """A memory with a limit, in which peaks can be watched."""

    @property
    def name(self) -> str:
        """What it is called; empty for the host's."""

    @property
    def limit_bytes(self) -> int:
        """What may be held in it."""

    def held_bytes(self) -> int:
        """Return what is held in it now."""

    def watch(self) -> AbstractContextManager[Watched]:
        """Return what watches the peak inside a `with` block."""


@dataclass(frozen=True, slots=True)
class HostMemory:
    """All anonymous bytes of this process."""

    limit_bytes: int
    name: str = ""

    def held_bytes(self) -> int:
        return held().counted_bytes

    def watch(self) -> PeakWatch:
        return PeakWatch()


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """What a framework's allocator holds on one accelerator."""

    name: str
    limit_bytes: int
    backend: Any

    def held_bytes(self) -> int:
        return int(self.backend.device_held_bytes(self.name))

    def watch(self) -> AbstractContextManager[Watched]:
        watching: AbstractContextManager[Watched] = self.backend.device_watch(self.name)
        return watching


def device_memories(model: Any, told: str | int | None) -> list[DeviceMemory]:
    """Return the accelerators that a model's framework uses, limited as told or by what there is."""
    backend = backend_of(model)
    limit = None if told is None else parse_size(told)
    there = {name: backend.device_limit_bytes(name) for name in backend.devices_with_memory()}
    bounds = {name: min(one for one in (limit, most) if one) for name, most in there.items() if limit or most}
    return [DeviceMemory(name, bound, backend) for name, bound in bounds.items()]
