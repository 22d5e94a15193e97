"""Streams over arrays in memory."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from anybatch.stream.stage import Stage
from anybatch.stream.stream import Stream


def from_arrays(arrays: Any) -> Stream:
    """Return a stream over arrays of equal length: one array, a tuple or a mapping; it yields the same.

    >>> [len(x) for x, y in from_arrays((np.zeros((5, 2)), np.arange(5))).batch(2)]
    [2, 2, 1]
    """
    arrays = mapped(np.asarray, arrays)
    lengths = {len(array) if array.ndim else None for array in leaves(arrays)}
    if len(lengths) != 1 or None in lengths:
        shapes = ", ".join(str(array.shape) for array in leaves(arrays)) or "none at all"
        raise ValueError(f"the arrays have the shapes {shapes}; their first dimensions must be equal")
    return Stream(Arrays(arrays, lengths.pop() or 0))


@dataclass(frozen=True, slots=True, repr=False)
class Arrays(Stage):
    """Rows of arrays, in order. Batches are views: nothing is copied."""

    arrays: Any
    rows: int

    def elements(self) -> Iterator[Any]:
        return (mapped(lambda array: array[at], self.arrays) for at in range(self.rows))  # noqa: B023

    def batches(self, size: int, *, drop_remainder: bool) -> Iterator[Any]:
        end = self.rows - self.rows % size if drop_remainder else self.rows
        for start in range(0, end, size):
            stop = min(start + size, end)
            yield mapped(lambda array: array[start:stop], self.arrays)  # noqa: B023

    def length(self) -> int:
        return self.rows

    def __repr__(self) -> str:
        return f"arrays of {self.rows:,} rows"


def mapped(change: Callable[[Any], Any], structure: Any) -> Any:
    """Return a structure with every leaf changed; tuples and mappings have leaves, all else is one."""
    if isinstance(structure, Mapping):
        return {name: mapped(change, part) for name, part in structure.items()}
    if isinstance(structure, tuple):
        return tuple(mapped(change, part) for part in structure)
    return change(structure)


def leaves(structure: Any) -> list[Any]:
    """Return the leaves of a structure, in order."""
    if isinstance(structure, Mapping):
        return [leaf for part in structure.values() for leaf in leaves(part)]
    if isinstance(structure, tuple):
        return [leaf for part in structure for leaf in leaves(part)]
    return [structure]
