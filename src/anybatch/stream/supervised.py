"""Tuples as Keras wants them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anybatch.records import BytesColumn, RaggedColumn
from anybatch.stream.chunk import Chunk, State
from anybatch.stream.order import OneToOne
from anybatch.stream.run import Run
from anybatch.stream.structure import Loose, Structure, as_columns, leaves, mapped


@dataclass(frozen=True, slots=True)
class Supervised(OneToOne):
    """(x, y) or (x, y, sample_weight) by name; ragged columns padded to the longest of the batch."""

    x: Any
    y: Any
    sample_weight: Any

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        # naming columns takes no thread
        return map(self.change, self.parent.open(run, state))

    def change(self, chunk: Chunk) -> Chunk:
        if isinstance(chunk.value, Loose):
            return chunk.with_value(Loose(self._chosen(one) for one in chunk.value))
        chosen = self._chosen(chunk.value)
        return chunk.with_value(mapped(_dense, chosen) if chunk.whole else chosen)

    def pads(self, chunk: Chunk) -> bool:
        """Return whether a column has rows of different lengths, or may have: a function makes each of them.

        These look equally long wherever they are so by chance. Images are taken for what they look like.
        """
        loose = isinstance(chunk.value, Loose)
        columns = leaves(self._chosen(as_columns(chunk.value)))
        return any(
            isinstance(column, RaggedColumn) or (loose and _may_be_lists(column)) for column in columns
        )

    def nests(self, chunk: Chunk) -> bool:
        """Return whether a column has lists in its lists."""
        columns = leaves(self._chosen(as_columns(chunk.value)))
        return any(
            isinstance(column, RaggedColumn) and isinstance(column.values, RaggedColumn) for column in columns
        )

    def lengths(self, chunk: Chunk) -> Structure:
        """Return how long the longest row of each column is; 0 where rows have no length of their own."""
        return mapped(_longest, self._chosen(as_columns(chunk.value)))

    def padded(self, chunk: Chunk, lengths: Structure) -> Chunk:
        """Return a part of a batch with its rows as long as the batch's longest."""
        return chunk.with_value(mapped(_dense, self._chosen(as_columns(chunk.value)), lengths))

    def _chosen(self, columns: Structure) -> Structure:
        wanted = [self.x, self.y, self.sample_weight]
        while wanted[-1] is None:
            wanted.pop()
        return _parts(columns, wanted)

    def described(self) -> str:
        names = [f"{name!r}" for name in (self.x, self.y, self.sample_weight) if name is not None]
        return f"as_supervised({', '.join(names)})"


def check_names(names: Any) -> None:
    """Raise an error unless columns are named: by a name, or by lists or mappings of names."""
    if names is None or isinstance(names, str):
        return
    if not isinstance(names, Mapping | Sequence) or isinstance(names, bytes):
        raise TypeError(
            f"as_supervised names columns: by a name, a list or a mapping of names; got {names!r}"
        )
    for name in names.values() if isinstance(names, Mapping) else names:
        check_names(name)


def _parts(columns: Structure, wanted: Sequence[Any]) -> Structure:
    if not isinstance(columns, Mapping):
        raise ValueError(
            f"as_supervised takes columns by name, and these have none; got {type(columns).__name__}"
        )
    parts = tuple(_chosen(columns, names) for names in wanted)
    return parts if len(parts) > 1 else parts[0]


def _chosen(columns: Mapping[str, Any], names: Any) -> Structure:
    if isinstance(names, str):
        if names not in columns:
            raise ValueError(f"as_supervised wants {names!r}; there are {', '.join(map(repr, columns))}")
        return columns[names]
    if isinstance(names, Mapping):
        return {key: _chosen(columns, name) for key, name in names.items()}
    if names is None:
        return None
    return tuple(_chosen(columns, name) for name in names)


def _may_be_lists(column: Any) -> bool:
    return isinstance(column, np.ndarray) and 2 <= column.ndim <= 3


def _longest(column: Any) -> int:
    return int(column.row_lengths.max(initial=0)) if isinstance(column, RaggedColumn) else 0


def _dense(column: Any, length: int | None = None) -> Any:
    if isinstance(column, RaggedColumn):
        return column.to_padded(length=length)
    return np.asarray(column) if isinstance(column, BytesColumn) else column
