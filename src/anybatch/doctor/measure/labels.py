"""Which feature is the label, and which class each record has."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anybatch.doctor.measure.facts import LabelFacts, ShardFacts
from anybatch.errors import AnybatchError

_USUAL = ("label", "labels", "class", "target", "y", "image/class/label", "class_id", "category")
_MOST_CLASSES = 1000
_PARTS = 10
_MOST_NAMES = 20


class NoSuchLabel(AnybatchError, ValueError):
    """A label that is no feature of the records."""

    def __init__(self, label: str, records: int, names: Sequence[str]) -> None:
        super().__init__(label, records, tuple(names))
        self.label = label
        self.records = records
        self.names = tuple(names)

    def __str__(self) -> str:
        more = ", …" if len(self.names) > _MOST_NAMES else ""
        there = ", ".join(self.names[:_MOST_NAMES]) + more if self.names else "none"
        fact = f"no feature `{self.label}` in the {self.records:,} records looked at; there are {there}"
        return f"{fact}; name one of them as the label, or none and it is guessed"


def checked_label(label: str, shards: Sequence[ShardFacts]) -> str:
    """Return the label if some record has it, or if there is no record to ask."""
    names = {seen.name for shard in shards for seen in shard.seen}
    records = sum(shard.looked_at for shard in shards)
    if records and label not in names:
        raise NoSuchLabel(label, records, sorted(names))
    return label


def guessed_label(shards: Iterable[ShardFacts]) -> str | None:
    """Return the feature that is called like a label and has one value per record, if there is one.

    Else one with the same number of them in every record: a place for each class.
    """
    limits = [
        (seen.name, seen.values)
        for shard in shards
        for seen in shard.seen
        if seen.values is not None and not seen.in_lists
    ]
    single = {name for name, (_, most) in limits if most == 1}
    even = {name for name, (least, most) in limits if least == most}
    return next((name for names in (single, even) for name in _USUAL if name in names), None)


def marked_places(rows: NDArray[Any]) -> NDArray[np.int64] | None:
    """Return which place each row marks, one place in every row; None if they say something else.

    >>> marked_places(np.array([[0, 1, 0], [0, 0, 1]])), marked_places(np.array([[0, 1, 1]]))
    (array([1, 2]), None)
    """
    marks = rows == 1
    if rows.shape[1] < 2 or not ((marks | (rows == 0)).all() and (marks.sum(axis=1) == 1).all()):
        return None
    places: NDArray[np.int64] = marks.argmax(axis=1)
    return places


def label_facts(name: str, values: NDArray[Any], *, marked: bool) -> LabelFacts | None:
    """Return labels as classes. More than a thousand different numbers are taken as continuous."""
    if not len(values):
        return None
    classes, codes = np.unique(values, return_inverse=True)
    continuous = values.dtype.kind == "f" and len(classes) > _PARTS
    if not continuous and len(classes) <= min(_MOST_CLASSES, max(2, len(values) // 2)):
        return LabelFacts(
            name, codes.astype(np.int64), tuple(classes.tolist()), continuous=False, marked=marked
        )
    if values.dtype.kind not in "if":
        return None
    edges = np.quantile(values[np.isfinite(values)], np.linspace(0, 1, _PARTS + 1)[:-1])
    codes = np.searchsorted(edges, values, side="right") - 1
    return LabelFacts(name, np.maximum(codes, 0).astype(np.int64), tuple(edges.tolist()), continuous=True)
