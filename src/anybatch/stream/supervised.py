"""Tuples as Keras wants them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anybatch.records import BytesColumn, RaggedColumn
from anybatch.stream.chunk import Chunk
from anybatch.stream.map import Mapped
from anybatch.stream.structure import Loose, Structure, mapped


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
        if isinstance(chunk.value, Loose):
            return chunk.with_value(Loose(_parts(one, wanted) for one in chunk.value))
        parts = _parts(chunk.value, wanted)
        return chunk.with_value(mapped(_dense, parts) if chunk.whole else parts)

    def described(self) -> str:
        names = [f"{name!r}" for name in (self.x, self.y, self.sample_weight) if name is not None]
        return f"as_supervised({', '.join(names)})"


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


def _dense(column: Any) -> Any:
    if isinstance(column, RaggedColumn):
        return column.to_padded()
    return np.asarray(column) if isinstance(column, BytesColumn) else column
