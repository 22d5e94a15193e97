"""What surveys have seen of each feature, over any number of shards."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias, TypeVar

from anybatch._native import Survey

KINDS = ("bytes", "float", "int64")

Number = TypeVar("Number", int, float)
Limits: TypeAlias = tuple[Number, Number] | None
"""The smallest and the largest, or None if there was nothing."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What some records hold under one name."""

    name: str
    in_lists: bool
    """It is a feature list of SequenceExamples."""
    present: int
    """Records that have it."""
    kinds: tuple[int, ...]
    """Records by kind, in the order of `KINDS`."""
    values: Limits[int]
    """Values per record, or per step of a feature list."""
    steps: Limits[int]
    bytes_per_value: Limits[int]
    floats: Limits[float]
    """The range of the finite ones."""
    ints: Limits[int]
    not_finite: int
    """Floats that are NaN or infinite."""

    @property
    def kind(self) -> str:
        """The kinds that occur, as text."""
        return (
            " or ".join(kind for kind, times in zip(KINDS, self.kinds, strict=True) if times) or "no values"
        )


def seen_in(surveys: Iterable[Survey]) -> list[Seen]:
    """Return every feature of all surveys together, by name."""
    by_name: dict[tuple[bool, str], list[Seen]] = {}
    for survey in surveys:
        for level, name, facts in survey.features():
            seen = _seen(name, level == "list", facts)
            by_name.setdefault((seen.in_lists, name), []).append(seen)
    return [reduce(_joined, several) for _, several in sorted(by_name.items())]


def _seen(name: str, in_lists: bool, facts: dict[str, Any]) -> Seen:
    return Seen(
        name=name,
        in_lists=in_lists,
        present=facts["present"],
        kinds=tuple(facts["kinds"]),
        values=facts["counts"],
        steps=facts["steps"],
        bytes_per_value=facts["sizes"],
        floats=facts["floats"],
        ints=facts["ints"],
        not_finite=facts["not_finite"],
    )


def _joined(a: Seen, b: Seen) -> Seen:
    return Seen(
        name=a.name,
        in_lists=a.in_lists,
        present=a.present + b.present,
        kinds=tuple(x + y for x, y in zip(a.kinds, b.kinds, strict=True)),
        values=_widened(a.values, b.values),
        steps=_widened(a.steps, b.steps),
        bytes_per_value=_widened(a.bytes_per_value, b.bytes_per_value),
        floats=_widened(a.floats, b.floats),
        ints=_widened(a.ints, b.ints),
        not_finite=a.not_finite + b.not_finite,
    )


def _widened(a: Limits[Number], b: Limits[Number]) -> Limits[Number]:
    if a is None or b is None:
        return a if b is None else b
    return min(a[0], b[0]), max(a[1], b[1])
