"""Sizes and counts: text to numbers once, at the edge, and numbers to text for people."""

import re
from fractions import Fraction
from operator import index
from typing import SupportsIndex

LARGEST_BYTES = 2**63 - 1

_LETTERS = "kmgtpe"
_BINARY = {"": 1, "b": 1} | {
    letter + ending: 1024**power for power, letter in enumerate(_LETTERS, 1) for ending in ("", "ib")
}
_UNITS = _BINARY | {letter + "b": 1000**power for power, letter in enumerate(_LETTERS, 1)}
_NAMES = ("B", *(letter.upper() + "iB" for letter in _LETTERS))

# at most 20 digits on either side: 2**63 has 19, and longer text only costs time
_SIZE = re.compile(r"\s*([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([A-Za-z]*)\s*")


class BadSize(ValueError):
    """Text or a number that is no size in bytes."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"{self.text!r} is no size; write '512MiB', '2GB' or a number of bytes from 1 to 2**63 - 1"


def parse_size(text: str | float | SupportsIndex) -> int:
    """Return how many bytes a size means, fractions of a byte cut off.

    KB, MB … count in thousands; KiB, MiB … and a lone K, M … in 1024.

    >>> parse_size("512MiB"), parse_size("2GB"), parse_size("1.5 GiB"), parse_size(123)
    (536870912, 2000000000, 1610612736, 123)
    """
    parsed = _from_text(text) if isinstance(text, str) else _from_number(text)
    if parsed is None or not 1 <= parsed <= LARGEST_BYTES:
        raise BadSize(text if isinstance(text, str) else repr(text))
    return parsed


def _from_text(text: str) -> int | None:
    found = _SIZE.fullmatch(text)
    if found is None or found[2].lower() not in _UNITS:
        return None
    return int(Fraction(found[1]) * _UNITS[found[2].lower()])


def _from_number(number: float | SupportsIndex) -> int | None:
    if isinstance(number, bool):
        return None
    if isinstance(number, float):
        return int(number) if number.is_integer() else None
    try:
        return index(number)
    except TypeError:
        return None


def size(n_bytes: int, *, up: bool = False) -> str:
    """Return bytes as text of three digits; with `up` the text never means less than `n_bytes`.

    >>> size(1610612736), size(999), size(1024**2 + 1), size(1024**2 + 1, up=True)
    ('1.5 GiB', '999 B', '1 MiB', '1.01 MiB')
    """
    if n_bytes < 0:
        return "-" + size(-n_bytes)
    power = min(max(n_bytes.bit_length() - 1, 0) // 10, len(_NAMES) - 1)
    number = _three_digits(Fraction(n_bytes, 1024**power), up=up)
    if number >= 1024 and power + 1 < len(_NAMES):
        number, power = Fraction(1), power + 1
    return f"{float(number):.15g} {_NAMES[power]}"


def _three_digits(number: Fraction, *, up: bool) -> Fraction:
    scale = 100 if number < 10 else 10 if number < 100 else 1
    scaled = number * scale
    return Fraction(-(-scaled // 1) if up else round(scaled), scale)


def count(n: int) -> str:
    """Return a count with its thousands marked.

    >>> count(1234)
    '1,234'
    """
    return f"{n:,}"
