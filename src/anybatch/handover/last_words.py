"""The exception that ended a child, in fields that somebody else can judge."""

from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from anybatch.handover.sealed import read_sealed, write_sealed

_FILE = "last-words.json"
_LONGEST_TEXT = 2000


@dataclass(frozen=True, slots=True)
class LastWords:
    """What an uncaught exception was and where it came from."""

    kind: str
    kinds: tuple[str, ...]
    """The class and all classes above it, with their modules."""
    text: str
    errno: int | None = None
    where: str = ""
    """File and line of the innermost frame."""

    def write(self, folder: Path) -> None:
        """Leave them for the parent, if the disk allows it."""
        with suppress(OSError):
            write_sealed(folder / _FILE, asdict(self))


def last_words_of(error: BaseException) -> LastWords:
    """Return the fields of an exception."""
    kinds = tuple(f"{one.__module__}.{one.__qualname__}" for one in type(error).__mro__)
    number = getattr(error, "errno", None)
    return LastWords(
        kind=type(error).__name__,
        kinds=kinds,
        text=_text(error),
        errno=number if isinstance(number, int) else None,
        where=_where(error),
    )


def read_last_words(folder: Path) -> LastWords | None:
    """Return what the last child left, or None."""
    found = read_sealed(folder / _FILE)
    try:
        return None if found is None else LastWords(**(found | {"kinds": tuple(found["kinds"])}))
    except (TypeError, KeyError):
        return None


def forget_last_words(folder: Path) -> None:
    """Remove them, so that they are not taken for those of the next attempt."""
    (folder / _FILE).unlink(missing_ok=True)


def _text(error: BaseException) -> str:
    try:
        return str(error)[:_LONGEST_TEXT]
    except Exception:  # noqa: BLE001 - a user's exception may fail at being printed
        return ""


def _where(error: BaseException) -> str:
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None:
        frames = frames.tb_next
    return "" if frames is None else f"{frames.tb_frame.f_code.co_filename}:{frames.tb_lineno}"
