"""What a stream's elements will look like, as far as that is known without reading any."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from anybatch.records import (
    Bytes,
    Feature,
    Image,
    Numbers,
    Padded,
    Ragged,
    Raw,
    RecordSet,
    Sequence,
    load_index,
)
from anybatch.stream.batch import Batch
from anybatch.stream.chunk import Chunk
from anybatch.stream.layout import CannotStore, Dense, Layout, Lists, Strings, layout_of
from anybatch.stream.lifted import every_stage
from anybatch.stream.map import Map, RandomMap
from anybatch.stream.several import Several
from anybatch.stream.stage import Operation, Stage
from anybatch.stream.structure import Structure, mapped
from anybatch.stream.supervised import Supervised

BYTES = "bytes"


def declared(stage: Stage) -> Structure:
    """Return the layout of every column, None for a dimension that varies; None if functions decide."""
    if isinstance(stage, Map | RandomMap):
        return None
    if isinstance(stage, Supervised):
        return _chosen(stage, declared(stage.parent))
    if isinstance(stage, Batch):
        return mapped(_padded_by_feature, declared(stage.parent))
    if isinstance(stage, Operation):
        return declared(stage.parent)
    if isinstance(stage, Several):
        found = [declared(parent) for parent in stage.parents]
        return found[0] if all(one == found[0] for one in found) else None
    record_set = getattr(stage, "record_set", None)
    if isinstance(record_set, RecordSet):
        return _of_features(record_set.features)
    return _of_arrays(getattr(stage, "arrays", None))


def rows_of_every_batch(stage: Stage) -> int | None:
    """Return how many records each batch has, if all have equally many."""
    batches = [one for one in every_stage(stage) if isinstance(one, Batch)]
    sizes = {one.size if one.drop_remainder else None for one in batches}
    return sizes.pop() if len(sizes) == 1 else None


def length_is_certain(stage: Stage) -> bool:
    """Return whether the length can be had without reading, and nothing met on the way can change it."""
    for record_set in _record_sets(stage):
        indexes = [load_index(shard) for shard in record_set.shards]
        # where records are known to be damaged, how many of a part come may differ from epoch to epoch
        if any(
            index is None or (record_set.on_corrupt == "skip" and (index.bad_records or not index.verified))
            for index in indexes
        ):
            return False
    return True


def _record_sets(stage: Stage) -> list[RecordSet]:
    found = [getattr(one, "record_set", None) for one in every_stage(stage)]
    return [one for one in found if isinstance(one, RecordSet)]


def _chosen(stage: Supervised, columns: Structure) -> Structure:
    if columns is None:
        return None
    blank = Chunk(columns, rows=0, numbers=np.empty(0, np.int64), epoch=0, stamp=lambda _: None)
    chosen = stage.change(blank).value
    return mapped(_padded, chosen) if stage.batched else chosen


def _padded_by_feature(layout: Any) -> Any:
    return _padded(layout) if isinstance(layout, Lists) and layout.padding is not None else layout


def _padded(layout: Any) -> Any:
    if not isinstance(layout, Lists):
        return layout
    inner = _padded(layout.values)
    longest: Any = None
    return replace(inner, shape=(longest, *inner.shape))


def _of_features(features: Mapping[str, Feature] | None) -> Structure:
    if features is None:
        return Strings((), objects=False)
    layouts = {name: _of_feature(feature) for name, feature in features.items()}
    return None if None in layouts.values() else layouts


def _of_feature(feature: Feature) -> Layout | None:
    match feature:
        case Numbers() | Raw() | Image():
            return Dense(np.dtype(feature.dtype), feature.shape)
        case Bytes():
            return Strings(feature.shape, objects=False)
        case Ragged():
            return Lists(_of_values(feature.dtype))
        case Padded():
            return Lists(_of_values(feature.dtype, feature.shape), repr(feature.default))
        case Sequence():
            steps = _of_feature(feature.feature)
            return None if steps is None else Lists(steps)
    return None


def _of_values(dtype: str, shape: tuple[int, ...] = ()) -> Layout:
    return Strings(shape, objects=False) if dtype == BYTES else Dense(np.dtype(dtype), shape)


def _of_arrays(arrays: Structure) -> Structure:
    try:
        return mapped(lambda array: layout_of(array, ""), arrays)
    except CannotStore:
        return None
