"""Environments of contenders that must not share ours: made once beside the data, from pinned lists."""

import hashlib
import subprocess
import sys
from functools import cache
from pathlib import Path

LISTS = Path(__file__).parent / "environments"


class NotMade(RuntimeError):
    """An environment could not be made: its contenders are left out, and everybody else goes on."""


def interpreter(name: str, folder: Path) -> str:
    """Return the Python of an environment, ours for no name; it is made if it is not there."""
    if not name:
        return sys.executable
    python, problem = _made(LISTS / f"{name}.txt", folder.resolve())
    if problem:
        raise NotMade(f"its environment could not be made: {problem}")
    return python


@cache  # what could not be made is not tried again for every case
def _made(wanted: Path, folder: Path) -> tuple[str, str]:
    """Return the interpreter, and why there is none."""
    place = folder / f"env-{wanted.stem}-{hashlib.sha256(wanted.read_bytes()).hexdigest()[:12]}"
    python = place / "bin" / "python"
    if (place / "complete").exists():
        return str(python), ""
    print(f"installing {wanted.stem} into {place}", file=sys.stderr)
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(place)],
        [str(python), "-m", "pip", "install", "--quiet", "-r", str(wanted)],
    ):
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            return "", last_line(done.stderr)
    (place / "complete").touch()
    return str(python), ""


def last_line(text: str) -> str:
    """Return the last line that says something."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it said nothing")
