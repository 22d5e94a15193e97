"""Two hosts on this machine, and a line between them that can be slow, lose packets, or be cut.

A host is a network namespace whose only device is a TUN. A thread reads the packets that one host sends, and
hands them to the other when it is time, or never: TCP at both ends meets real delay, loss and disorder. That
takes namespaces and TUN of a kernel; netem, which does the same inside it, is left out of many.
"""

import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pytest

_TUN = "/dev/net/tun"
_SET_INTERFACE = 0x400454CA
_PACKETS_ALONE = 0x0001 | 0x1000
"""IP packets, no frames, and nothing before them."""
_LONGEST_PACKET = 1 << 16
_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Conditions:
    """What happens to packets in one direction: each is late by `delay_seconds`, give or take the jitter."""

    delay_seconds: float = 0.0
    jitter_seconds: float = 0.0
    loss: float = 0.0
    """The share of packets that never come."""


CUT = Conditions(loss=1.0)


class Way:
    """One direction of a line. The n-th packet under the same conditions always has the same fate."""

    def __init__(self, source: int, target: int, seed: int) -> None:
        self.conditions = Conditions()
        self.passed = 0
        self.dropped = 0
        self._source = source
        self._target = target
        self._draw = random.Random(seed)
        self._under_way: list[tuple[float, int, bytes]] = []

    def take(self) -> None:
        """Take everything that was sent; what is not lost is delivered when it is due."""
        with suppress(BlockingIOError):
            while True:
                self._send(os.read(self._source, _LONGEST_PACKET), self.conditions)

    def _send(self, packet: bytes, how: Conditions) -> None:
        fate, lateness = self._draw.random(), self._draw.uniform(-1, 1)
        if fate < how.loss:
            self.dropped += 1
            return
        self.passed += 1
        due = time.monotonic() + how.delay_seconds + lateness * how.jitter_seconds
        heapq.heappush(self._under_way, (due, self.passed, packet))

    def deliver(self) -> float:
        """Hand over what is due, and return the seconds until more will be."""
        while self._under_way and self._under_way[0][0] <= time.monotonic():
            # a device that is down takes nothing
            with suppress(OSError):
                os.write(self._target, heapq.heappop(self._under_way)[-1])
        return max(0.0, self._under_way[0][0] - time.monotonic()) if self._under_way else _LOOK_SECONDS


class Line:
    """Carries packets between two hosts until it is closed."""

    def __init__(self, hosts: Sequence[str], ends: Sequence[int], seed: int = 1) -> None:
        self.hosts = hosts
        self.ways = [Way(ends[0], ends[1], seed), Way(ends[1], ends[0], seed + 1)]
        self._ends = ends
        self._closed = threading.Event()
        self._carrier = threading.Thread(target=self._carry, name="line", daemon=True)
        self._carrier.start()

    @property
    def passed(self) -> int:
        return sum(way.passed for way in self.ways)

    @property
    def dropped(self) -> int:
        return sum(way.dropped for way in self.ways)

    def becomes(self, conditions: Conditions) -> None:
        """Let other conditions hold, in both directions, for what is sent from now on."""
        for way in self.ways:
            way.conditions = conditions

    def plug(self, state: str) -> None:
        """Have the first host's device "up", or "down"."""
        subprocess.run(["ip", "-n", self.hosts[0], "link", "set", self.hosts[0], state], check=True)

    def close(self) -> None:
        self._closed.set()
        self._carrier.join()

    def _carry(self) -> None:
        wait_seconds = 0.0
        while not self._closed.is_set():
            select.select(self._ends, [], [], min(wait_seconds, _LOOK_SECONDS))
            for way in self.ways:
                way.take()
            wait_seconds = min(way.deliver() for way in self.ways)


def address(host: int) -> str:
    return f"10.77.0.{host + 1}"


@contextmanager
def two_hosts() -> Iterator[Line]:
    """Yield a line between two hosts, or skip the test where nobody may make any."""
    hosts = [f"ab{os.getpid()}-{n}" for n in range(2)]
    ends: list[int] = []
    try:
        for n, host in enumerate(hosts):
            ordered(f"netns add {host}")
            ends.append(_device(host))
            ordered(f"link set {host} netns {host}")
            ordered(f"-n {host} addr add {address(n)}/24 dev {host}")
            for device in ("lo", host):
                ordered(f"-n {host} link set {device} up")
        line = Line(hosts, ends)
        try:
            yield line
        finally:
            line.close()
    finally:
        for end in ends:
            os.close(end)
        for host in hosts:
            subprocess.run(["ip", "netns", "del", host], check=False, capture_output=True)


def ordered(command: str) -> None:
    """Have `ip` do something, or skip the test where it may not."""
    try:
        subprocess.run(["ip", *command.split()], check=True, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("two hosts on one machine need `ip`, of iproute2")
    except subprocess.CalledProcessError as problem:
        pytest.skip(f"two hosts on one machine need root: `ip {command}`: {problem.stderr.strip()}")


def _device(name: str) -> int:
    """Return a new network device as a file: it is there until the file is closed."""
    device = None
    try:
        device = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(device, _SET_INTERFACE, struct.pack("16sH22x", name.encode(), _PACKETS_ALONE))
    except OSError as problem:
        if device is not None:
            os.close(device)
        pytest.skip(f"a line between two hosts needs {_TUN}: {problem.strerror}")
    return device
