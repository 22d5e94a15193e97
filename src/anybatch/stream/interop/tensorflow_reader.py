"""Shards read by tf.data alone, as well as it can: what `anybatch bench` compares with."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import tensorflow as tf

from anybatch.records import Bytes, Feature, Numbers, Ragged, find_shards

_BUFFER_BYTES = 8 << 20
_SHUFFLE_RECORDS = 10_000
_SEED = 7
_CHECKPOINT = "iterator"


class TfData:
    """Whole batches are parsed at a time, on as many threads as tf.data chooses; shuffled in a buffer."""

    def __init__(
        self,
        files: Sequence[str],
        features: Mapping[str, Feature] | type[bytes],
        *,
        batch_size: int,
        records: int,
    ) -> None:
        shards = find_shards(files)
        packings = {shard.compression for shard in shards}
        if len(packings) > 1:
            raise ValueError(
                "some of the shards are compressed and others are not; one pipeline reads one kind"
            )
        self._files = [shard.path for shard in shards]
        self._packing = packings.pop()
        self._parsed = None if isinstance(features, type) else _features_of_tf(features)
        self._batch_size = batch_size
        self._records = records

    def batches(self, *, shuffled: bool) -> Iterator[Any]:
        """Open the files and return the batches of one pass."""
        records = tf.data.TFRecordDataset(self._files, self._packing, _BUFFER_BYTES).take(self._records)
        if shuffled:
            records = records.shuffle(_SHUFFLE_RECORDS, seed=_SEED)
        batches = records.batch(self._batch_size, num_parallel_calls=tf.data.AUTOTUNE)
        return iter(batches.map(self._parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE))

    def rows(self, batch: Any) -> int:
        """Return how many records a batch holds."""
        return int(next(iter(batch.values())).shape[0])

    def columns(self, batch: Any) -> Mapping[str, Any]:
        """Return a batch as plain columns."""
        return {name: _plain(column) for name, column in batch.items()}

    def save(self, batches: Any, folder: Path) -> None:
        """Write down where a pass stands: its buffers are part of that."""
        tf.train.Checkpoint(iterator=batches).write(str(folder / _CHECKPOINT))

    def restore(self, batches: Any, folder: Path) -> None:
        """Let a new pass go on where another one stood."""
        tf.train.Checkpoint(iterator=batches).read(str(folder / _CHECKPOINT)).assert_consumed()

    def _parse(self, serialized: Any) -> Any:
        return (
            {"record": serialized} if self._parsed is None else tf.io.parse_example(serialized, self._parsed)
        )


def _features_of_tf(features: Mapping[str, Feature]) -> dict[str, Any]:
    return {name: _feature_of_tf(name, feature) for name, feature in features.items()}


def _feature_of_tf(name: str, feature: Feature) -> Any:
    match feature:
        case Numbers():
            return tf.io.FixedLenFeature(feature.shape, feature.dtype)
        case Bytes():
            return tf.io.FixedLenFeature(feature.shape, tf.string)
        case Ragged():
            return tf.io.RaggedFeature(tf.string if feature.dtype == "bytes" else feature.dtype)
    raise ValueError(f"feature `{name}` is {feature!r}, which its parser of whole batches does not read")


def _plain(column: Any) -> Any:
    if isinstance(column, tf.RaggedTensor):
        values, splits = column.values.numpy(), column.row_splits.numpy()
        return [values[start:stop] for start, stop in pairwise(splits)]
    return column.numpy()
