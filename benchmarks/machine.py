"""What the numbers were measured on."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("anybatch", "tensorflow", "keras", "numpy")


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fingerprint() -> dict[str, Any]:
    """Return what someone else needs to judge the numbers."""
    return {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "cpu": _first_value("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": cores(),
        "memory": _first_value("/proc/meminfo", "MemTotal"),
        "kernel": _release(f"{platform.system()} {platform.release()}"),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "load_before": os.getloadavg()[0],
    }


def in_words(machine: dict[str, Any]) -> str:
    """Return the fingerprint as one line for people."""
    return f"{kind_in_words(machine)}; load before the run {machine['load_before']:.2f}"


def kind_in_words(machine: dict[str, Any]) -> str:
    """Return the same without what changes from run to run."""
    memory_gib = int(machine["memory"].split()[0]) / (1 << 20) if machine["memory"] else 0
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {memory_gib:.1f} GiB, {_release(machine['kernel'])}, "
        f"Python {machine['python']}, {versions}"
    )


def _release(kernel: str) -> str:
    """Return a kernel's version without what only its builder knows.

    >>> _release("Linux 6.18.44-some-build")
    'Linux 6.18'
    """
    return ".".join(kernel.split(".")[:2])


def _first_value(path: str, name: str) -> str:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), "")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()
