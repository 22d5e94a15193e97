"""The records of a job read by anybatch."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import anybatch as ab
from anybatch.cli.bench.fingerprint import Columns
from anybatch.cli.bench.job import Job
from anybatch.records import BytesColumn, Feature, find_shards

_SEED = 7
_WINDOW = "256MiB"
_STATE = "state.json"


class Ours:
    """A stream, as a user would write it."""

    def __init__(self, job: Job, features: dict[str, Feature] | type[bytes]) -> None:
        self._job = job
        self._features = features
        # compressed shards cannot be sought
        packed = any(shard.compression for shard in find_shards(job.files))
        self._window = _WINDOW if packed else None

    def batches(self, *, shuffled: bool) -> Iterator[Any]:
        records = ab.read(self._job.files, self._features, on_corrupt="skip").take(self._job.records)
        if shuffled:
            records = records.shuffle(seed=_SEED, window=self._window)
        return iter(records.batch(self._job.batch_size))

    def rows(self, batch: Any) -> int:
        return len(next(iter(batch.values()))) if isinstance(batch, dict) else len(batch)

    def columns(self, batch: Any) -> Columns:
        named = batch if isinstance(batch, dict) else {"record": batch}
        return {name: _plain(column) for name, column in named.items()}

    def save(self, batches: Any, folder: Path) -> None:
        (folder / _STATE).write_text(json.dumps(batches.get_state()))

    def restore(self, batches: Any, folder: Path) -> None:
        batches.set_state(json.loads((folder / _STATE).read_text()))


def _plain(column: Any) -> Any:
    return np.asarray(column) if isinstance(column, BytesColumn) else column
