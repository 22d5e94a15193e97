"""The exception that ended a child, in fields that somebody else can judge."""

from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from anybatch.handover.disk import place
from anybatch.handover.sealed import read_sealed, sealed

_FILE = "last-words.json"
_LONGEST_TEXT = 1000
# escaped as JSON a character takes up to 12 bytes
_RESERVED_BYTES = 16 << 10


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
        """Leave them for the parent: in the room that was reserved, because the disk may be full."""
        with suppress(OSError), (folder / _FILE).open("r+b") as out:
            out.write(sealed(asdict(self)).ljust(_RESERVED_BYTES))


def reserve_last_words(folder: Path) -> None:
    """Make room for last words, which read as absent until then."""
    with suppress(OSError):
        place(folder / _FILE, [b" " * _RESERVED_BYTES], durable=False)


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
