"""Environments of contenders that must not share ours: made once beside the data, from pinned lists."""

import hashlib
import subprocess
import sys
from pathlib import Path

LISTS = Path(__file__).parent / "environments"


def interpreter(name: str, folder: Path) -> str:
    """Return the Python of an environment, ours for no name; it is made if it is not there."""
    if not name:
        return sys.executable
    wanted = LISTS / f"{name}.txt"
    place = folder.resolve() / f"env-{name}-{hashlib.sha256(wanted.read_bytes()).hexdigest()[:12]}"
    python = place / "bin" / "python"
    if not (place / "complete").exists():
        print(f"installing {name} into {place}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "-r", str(wanted)], check=True)
        (place / "complete").touch()
    return str(python)
