"""What a stream says of itself before it runs."""

import os

import numpy as np
import pytest

import anybatch as ab

FEATURES = {"image": ab.Raw("uint8", (4, 6)), "label": ab.Numbers("int64"), "words": ab.Ragged("int64")}


@pytest.fixture
def shard(tmp_path):
    record = {"image": bytes(24), "label": 1, "words": [1, 2]}
    (written,) = ab.write(tmp_path / "a.tfrecord", [record] * 5)
    return written


def test_every_stage_says_what_it_yields(shard):
    data = ab.read(shard, FEATURES).shuffle(seed=1).batch(2).as_supervised("image", "label")
    table = data.explain().splitlines()
    assert "image: uint8 4x6, label: int64, words: lists of int64" in table[2]
    assert "batches of (uint8 4x6, int64)" in table[-2]


def test_what_a_function_returns_is_not_guessed(shard):
    table = ab.read(shard, FEATURES).map(lambda record: record).explain()
    assert "what the function returns" in table


def test_shuffling_more_than_memory_can_keep_names_the_remedy(shard):
    data = ab.read(shard, FEATURES)
    # a hole of 8 TiB takes no room on the disk, and explaining reads nothing
    os.truncate(shard, 1 << 43)
    assert 'shuffle(window="256MiB")' in data.shuffle(seed=1).explain()
    assert "random reads" not in data.explain()
    assert "random reads" not in data.shuffle(seed=1, window="1MiB").explain()


@pytest.mark.parametrize("limit", ["64MiB", "900MiB", "3GiB"])
def test_a_limit_is_what_the_user_says_be_it_above_the_default(limit):
    data = ab.from_arrays(np.zeros((8, 4), "uint8")).batch(2).limit_memory(limit)
    assert f"{limit[:-3]} {limit[-3:]} at most" in data.explain()


def test_a_batch_above_the_default_limit_fits_under_a_limit_that_allows_it():
    rows = np.zeros((40, 4 << 20), "uint8")
    data = ab.from_arrays(rows).map(lambda row: row).batch(40)
    with pytest.raises(ab.errors.DoesNotFit, match="may use"):
        next(iter(data))
    assert next(iter(data.limit_memory("4GiB"))).shape == rows.shape
