"""Exact shuffles of more data than the page cache holds: swept up for many batches, and nobody can tell."""

from importlib import import_module
from itertools import chain as joined
from pathlib import Path

import numpy as np
import pytest

import anybatch as ab
from anybatch.handover import Orders
from tests.stream.harm import (
    check_a_shard_that_is_cut_meanwhile_is_named,
    check_only_the_damaged_record_is_left_out,
    labels,
)
from tests.stream.living_threads import check_no_thread_is_left

read = import_module("anybatch.stream.read")  # the package has a function of this name

RECORDS = 20_000
FEATURES = {"x": ab.Ragged("int64"), "label": ab.Numbers("int64")}


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("beyond")
    records = ({"x": range(n % 40 + 1), "label": n} for n in range(RECORDS))
    return [Path(shard) for shard in ab.write(folder / "a.tfrecord", records, shards=3)]


@pytest.fixture
def small_cache(monkeypatch):
    monkeypatch.setattr(read, "cacheable_bytes", lambda: 0)


def shuffled(shards, **options):
    # little memory, so that there are many sweeps
    return ab.read(shards, FEATURES, **options).limit_memory("8MiB").shuffle(seed=3)


@pytest.mark.parametrize(
    "chain",
    [
        lambda data: data.batch(64),
        lambda data: data.batch(64).limit_memory("4MiB"),
        lambda data: data.skip(100).take(15_000).batch(33, drop_remainder=True),
        lambda data: data.shard(3, 1).batch(32),
        lambda data: data.batch(64).repeat(2),
    ],
)
def test_the_batches_are_those_of_any_cache(shards, chain, monkeypatch):
    expected = labels(chain(shuffled(shards)))
    monkeypatch.setattr(read, "cacheable_bytes", lambda: 0)
    assert labels(chain(shuffled(shards))) == expected


def test_every_value_is_the_one_that_was_written(shards, small_cache):
    for batch in shuffled(shards).batch(64):
        for row, label in zip(batch["x"], batch["label"], strict=True):
            np.testing.assert_array_equal(row, np.arange(label % 40 + 1))


def test_a_stream_goes_on_in_the_middle(shards, small_cache):
    stream = shuffled(shards).batch(64)
    expected = labels(stream)
    for position in (1, 40, 41, 200, len(expected) - 1):
        before = iter(stream)
        for _ in range(position):
            next(before)
        after = iter(stream)
        after.set_state(before.get_state())
        assert labels(after) == expected[position:]
        before.close()


def test_parts_are_those_of_any_cache(shards, small_cache):
    parts = shuffled(shards).batch(100).parts(30)
    found = [value["label"].tolist() for value, _ in parts]
    assert sorted(joined.from_iterable(found)) == list(range(RECORDS))
    assert {len(part) for part in found} == {25}


def test_what_is_held_ahead_is_told(shards, small_cache):
    stream = shuffled(shards).batch(64)
    batches = iter(stream)
    seen = []
    for _ in range(100):
        next(batches)
        seen.append(stream.stats()[-1]["held_bytes"])
    batches.close()
    assert max(seen) > 400_000


def test_only_the_damaged_record_is_left_out(shards, tmp_path, small_cache):
    check_only_the_damaged_record_is_left_out(
        shards[0], tmp_path / "damaged.tfrecord", lambda path, **options: shuffled(path, **options).batch(64)
    )


def test_a_shard_that_is_cut_meanwhile_is_named(shards, tmp_path, small_cache):
    check_a_shard_that_is_cut_meanwhile_is_named(
        shards[0], tmp_path / "cut.tfrecord", lambda path: shuffled(path).batch(8)
    )


def test_letting_go_of_a_stream_leaves_no_thread(shards, small_cache):
    for _ in range(5):
        batches = iter(shuffled(shards).batch(64))
        next(batches)
        batches.close()
    check_no_thread_is_left()


class Told:
    """A reader that tells what it was allowed."""

    def __init__(self, monkeypatch):
        module = import_module("anybatch.records.record_set")
        real, self.allowed = module.Reader, []

        def made(*arguments, **options):
            self.allowed.append(options["swept_bytes"])
            return real(*arguments, **options)

        monkeypatch.setattr(module, "Reader", made)


def test_a_part_of_what_is_free_is_used_unless_a_limit_is_named(shards, monkeypatch):
    told = Told(monkeypatch)
    monkeypatch.setattr("anybatch.stream.limits.cacheable_bytes", lambda: 900)
    data = ab.read(shards, FEATURES).shuffle(seed=3).batch(64)
    for stream in (data, data.limit_memory("64MiB")):
        next(iter(stream))
        stream.parts(8, swept_bytes=7).__next__()
    assert told.allowed == [450, 7, None, 7]


def test_nothing_is_swept_up_after_a_death_for_want_of_memory(shards, monkeypatch):
    told = Told(monkeypatch)
    monkeypatch.setattr("anybatch.stream.limits.received_orders", lambda: Orders(prefetch=1))
    next(iter(shuffled(shards).batch(64)))
    assert told.allowed == [0]


def test_training_sweeps_up_what_its_plan_leaves_and_probes_sweep_nothing(shards, monkeypatch):
    keras = pytest.importorskip("keras")
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = ab.read(shards, FEATURES).shuffle(seed=3).map(pair, batched=True).batch(64).take(3)
    told = Told(monkeypatch)
    history = ab.fit(model, data, memory="8GiB", verbose=0)
    plan = history.plan
    assert set(told.allowed[:-1]) == {0}
    assert 0 < told.allowed[-1] < plan.limit_bytes - plan.predicted_peak_bytes


def pair(columns):
    label = columns["label"].astype("float32")[:, None]
    return label, label
