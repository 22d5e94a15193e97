"""Large records in random order that memory does not hold: many reads at a time past the page cache."""

import os
from importlib import import_module
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

import anybatch as ab
from tests.stream.harm import (
    check_a_shard_that_is_cut_meanwhile_is_named,
    check_only_the_damaged_record_is_left_out,
    labels,
)
from tests.stream.living_threads import check_no_thread_is_left, our_threads

read = import_module("anybatch.stream.read")  # the package has a function of this name

RECORDS, BYTES = 600, 100_000
FEATURES = {"image": ab.Raw("uint8", (BYTES,)), "label": ab.Numbers("int64")}


def image(label):
    return np.resize(np.arange(label % 200 + 7, dtype=np.uint8), BYTES)


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    records = ({"image": image(n).tobytes(), "label": n} for n in range(RECORDS))
    return [Path(shard) for shard in ab.write(folder / "a.tfrecord", records, shards=3)]


@pytest.fixture(params=["beyond the page cache", "not in it yet"])
def elsewhere(request, monkeypatch, shards):
    if request.param == "beyond the page cache":
        monkeypatch.setattr(read, "cacheable_bytes", lambda: 0)
        return
    for shard in shards:
        forget(shard)


def forget(path):
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def shuffled(shards, **options):
    # little memory, so that there are many sweeps
    return ab.read(shards, FEATURES, **options).limit_memory("32MiB").shuffle(seed=3)


def test_the_order_is_that_of_any_cache_and_every_value_right(shards, elsewhere):
    found = []
    for batch in shuffled(shards).batch(16):
        found.append(batch["label"].tolist())
        for row, label in zip(batch["image"], batch["label"], strict=True):
            np.testing.assert_array_equal(row, image(label))
    assert found == labels(shuffled(shards).batch(16))
    assert sorted(chain.from_iterable(found)) == list(range(RECORDS))


def test_records_are_read_ahead_of_their_batches(shards, monkeypatch):
    for shard in shards:
        shard.read_bytes()  # into the page cache, whatever other tests have left there
    assert "anybatch-sweep" not in seen_threads(shards)
    monkeypatch.setattr(read, "cacheable_bytes", lambda: 0)
    assert "anybatch-sweep" in seen_threads(shards)


def seen_threads(shards):
    batches = iter(shuffled(shards).batch(16))
    next(batches)
    seen = our_threads()
    batches.close()
    return seen


def test_a_stream_goes_on_in_the_middle(shards, elsewhere):
    stream = shuffled(shards).batch(16)
    expected = labels(stream)
    for position in (1, 5, 20, len(expected) - 1):
        before, after = iter(stream), iter(stream)
        for _ in range(position):
            next(before)
        after.set_state(before.get_state())
        assert labels(after) == expected[position:]
        before.close()


def test_only_the_damaged_record_is_left_out(shards, tmp_path, monkeypatch):
    monkeypatch.setattr(read, "cacheable_bytes", lambda: 0)
    check_only_the_damaged_record_is_left_out(
        shards[0], tmp_path / "damaged.tfrecord", lambda path, **options: shuffled(path, **options).batch(16)
    )


def test_a_shard_that_is_cut_meanwhile_is_named(shards, tmp_path, monkeypatch):
    monkeypatch.setattr(read, "cacheable_bytes", lambda: 0)
    check_a_shard_that_is_cut_meanwhile_is_named(
        shards[0], tmp_path / "cut.tfrecord", lambda path: shuffled(path).batch(4)
    )


def test_letting_go_of_a_stream_leaves_no_thread(shards, elsewhere):
    for _ in range(5):
        batches = iter(shuffled(shards).batch(16))
        next(batches)
        batches.close()
    check_no_thread_is_left()
