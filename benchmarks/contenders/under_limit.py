"""Run a training process under a limit, and see how it ends."""

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from anybatch.memory import held_by_tree
from anybatch.supervise.own_group import OwnGroup, own_group
from benchmarks.job import NOT_HERE

ROOT = Path(__file__).resolve().parents[2]
SAMPLE_SECONDS = 0.01
# a shell joins the group and becomes the command, so that its imports are in it too
ENTER = 'echo $$ > "$0" && exec "$@"'


@dataclass(frozen=True, slots=True)
class End:
    """How a process ended, what it said, and the most that it held together with its children."""

    code: int
    said: str
    peak_bytes: int


def trained_in_group(command: Sequence[str], limit_bytes: int) -> End:
    """Run a command in a memory group of its own, as a container is one."""
    group = own_group(limit_bytes)
    if not isinstance(group, OwnGroup):
        raise OSError(f"{NOT_HERE}: no memory group: {group}")
    try:
        return trained_with(["sh", "-c", ENTER, str(group.entrance), *command])
    finally:
        group.remove()


def trained_with(command: Sequence[str]) -> End:
    """Run a command to its end."""
    with tempfile.TemporaryFile("w+") as said:
        with subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": _path(), "TF_CPP_MIN_LOG_LEVEL": "3"},
            stdout=subprocess.DEVNULL,
            stderr=said,
            cwd=ROOT,
        ) as child:
            peak = _peak_of(child)
        said.seek(0)
        return End(child.returncode, said.read(), peak)


def _path() -> str:
    """Return where modules are found: this folder first, then wherever they were before."""
    return os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


def cause(end: End) -> str:
    """Return in a few words what ended a process."""
    if end.code in {-9, 137}:
        return "killed by the kernel"
    if end.code < 0:
        return f"signal {-end.code}"
    for name in ("ResourceExhaustedError", "MemoryError"):
        if name in end.said:
            return name
    return f"exit code {end.code}"


def _peak_of(child: "subprocess.Popen[bytes]") -> int:
    peak = 0
    while child.poll() is None:
        peak = max(peak, held_by_tree(child.pid).counted_bytes)
        time.sleep(SAMPLE_SECONDS)
    return peak
