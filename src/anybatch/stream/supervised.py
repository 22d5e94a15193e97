"""Tuples as Keras wants them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from anybatch.records import BytesColumn, RaggedColumn
from anybatch.stream.chunk import Chunk
from anybatch.stream.map import Mapped
from anybatch.stream.structure import Structure, as_columns, mapped


@dataclass(frozen=True, slots=True)
class Supervised(Mapped):
    """(x, y) or (x, y, sample_weight) by name; ragged columns padded to the longest of the batch."""

    x: Any
    y: Any
    sample_weight: Any

    def change(self, chunk: Chunk) -> Chunk:
        wanted = [self.x, self.y, self.sample_weight]
        while wanted[-1] is None:
            wanted.pop()
        columns = as_columns(chunk.value)
        parts = tuple(_chosen(columns, names) for names in wanted)
        if chunk.whole:
            parts = mapped(_dense, parts)
        return chunk.with_value(parts if len(parts) > 1 else parts[0])

    def described(self) -> str:
        names = [f"{name!r}" for name in (self.x, self.y, self.sample_weight) if name is not None]
        return f"as_supervised({', '.join(names)})"


def _chosen(columns: Structure, names: Any) -> Structure:
    if isinstance(names, str):
        if names not in columns:
            raise KeyError(f"there is no {names!r}; there are: {', '.join(sorted(columns))}")
        return columns[names]
    if isinstance(names, Mapping):
        return {key: _chosen(columns, name) for key, name in names.items()}
    if names is None:
        return None
    return tuple(_chosen(columns, name) for name in names)


def _dense(column: Any) -> Any:
    if isinstance(column, RaggedColumn):
        return column.to_padded()
    return np.asarray(column) if isinstance(column, BytesColumn) else column
