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
    """Return the feature that is called like a label and has one value per record, if there is one."""
    single = {
        seen.name
        for shard in shards
        for seen in shard.seen
        if seen.values is not None and seen.values[1] == 1 and not seen.in_lists
    }
    return next((name for name in _USUAL if name in single), None)


def label_facts(name: str, values: NDArray[Any], numbers: NDArray[np.int64]) -> LabelFacts | None:
    """Return labels as classes. More than a thousand different numbers are taken as continuous."""
    if not len(numbers):
        return None
    classes, codes = np.unique(values, return_inverse=True)
    continuous = values.dtype.kind == "f" and len(classes) > _PARTS
    if not continuous and len(classes) <= min(_MOST_CLASSES, max(2, len(values) // 2)):
        return LabelFacts(name, codes.astype(np.int64), tuple(classes.tolist()), continuous=False)
    if values.dtype.kind not in "if":
        return None
    edges = np.quantile(values[np.isfinite(values)], np.linspace(0, 1, _PARTS + 1)[:-1])
    codes = np.searchsorted(edges, values, side="right") - 1
    return LabelFacts(name, np.maximum(codes, 0).astype(np.int64), tuple(edges.tolist()), continuous=True)
