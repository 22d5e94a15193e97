"""JSON with a checksum: damage reads as absence."""

import hashlib
import json
from pathlib import Path
from typing import Any, TypeAlias

from anybatch.handover.disk import DISK, Disk, place

Json: TypeAlias = dict[str, Any]
"""What JSON calls an object."""


def sealed(content: Json) -> bytes:
    """Return one line of JSON that knows its own checksum.

    >>> unsealed(sealed({"step": 7}))
    {'step': 7}
    """
    return json.dumps({"sum": _checksum(content), "content": content}).encode()


def unsealed(line: bytes) -> Json | None:
    """Return the content of a line, or None if it is not what was written."""
    try:
        found = json.loads(line)
        content = found["content"]
        intact = found["sum"] == _checksum(content)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return content if intact and isinstance(content, dict) else None


def write_sealed(file: Path, content: Json, *, durable: bool = True, disk: Disk = DISK) -> None:
    """Put a document in its place, whole."""
    place(file, [sealed(content)], durable=durable, disk=disk)


def read_sealed(file: Path) -> Json | None:
    """Return a document, or None where there is none or it is damaged."""
    try:
        return unsealed(file.read_bytes())
    except OSError:
        return None


def _checksum(content: Any) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()
