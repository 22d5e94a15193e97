"""The small text files through which the kernel tells its numbers."""

from pathlib import Path

ROOT = Path("/")


def text_of(file: Path) -> str | None:
    """Return what a file of the kernel says, or None where there is no such file or nobody may read it."""
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None


def number_in(file: Path) -> int | None:
    """Return the one number in a file; None for `max` and for anything that is no number."""
    return _whole(text_of(file) or "")


def numbers_by_name(file: Path) -> dict[str, int]:
    """Return `name number` and `name: number kB` lines as a mapping, in the file's own unit."""
    found: dict[str, int] = {}
    for line in (text_of(file) or "").splitlines():
        name, *rest = line.split()[:2] or [""]
        number = _whole(rest[0]) if rest else None
        if number is not None:
            found[name.rstrip(":")] = number
    return found


def _whole(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() else None
