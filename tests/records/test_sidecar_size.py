"""What an index costs on disk."""

import numpy as np
import pytest

import anybatch as ab
from anybatch.records.index import sidecar_beside

RECORDS = 20_000


def of_one_size(n):
    return {"x": np.zeros(10, "float32"), "label": n}


def ragged(n):
    return {"x": np.arange(n * 7919 % 200)}


def skewed(n):
    return {"x": bytes(1_000_000 if n % 1_000 == 999 else n % 50)}


@pytest.mark.parametrize(
    ("record", "most_bytes"),
    [(of_one_size, 0.5), (ragged, 3), (skewed, 16)],
    ids=["one size", "ragged", "skewed"],
)
def test_a_record_costs_a_byte_or_two_and_never_more_than_sixteen(tmp_path, record, most_bytes):
    (shard,) = ab.write(tmp_path / "a.tfrecord", map(record, range(RECORDS)))
    assert sum(len(batch["x"]) for batch in ab.read(shard).batch(1_000)) == RECORDS
    assert sidecar_beside(shard).stat().st_size <= most_bytes * RECORDS
