"""Lists of an Example that tf.io pads: as long as the longest of their batch, wherever they go before."""

import numpy as np
import pytest
from pipelines import shards
from stream_laws import (
    check_restores_before_every_element,
    check_threads_and_chunks_change_nothing,
    elements,
)

import anybatch as ab
from anybatch.errors import DoesNotFit
from anybatch.records import Padded

FEATURES = {"n": ab.Numbers("int64"), "r": Padded("int64", default=-1)}
BATCH = 4


def read(features=FEATURES, compression=None):
    return ab.read(shards(compression), features)


def in_python(numbers, size=BATCH):
    """Return the lists of the records with these numbers, padded batch by batch."""
    lists = [[number + step for step in range(number % 4)] for number in numbers]
    for start in range(0, len(lists), size):
        batch = lists[start : start + size]
        longest = max(map(len, batch))
        yield [one + [-1] * (longest - len(one)) for one in batch]


def even(record):
    return record["n"] % 2 == 0


WAYS = {
    "straight": lambda one: one,
    "compressed": lambda _: read(compression="GZIP"),
    "filtered": lambda one: one.filter(even),
    "mapped": lambda one: one.map(lambda record: {**record}),
    "mapped and filtered": lambda one: one.map(lambda record: record).filter(even),
    "cached": lambda one: one.cache(),
    "cached behind a filter": lambda one: one.filter(even).cache(),
    "cached behind a function": lambda one: one.map(lambda record: {**record}).cache(),
    "shuffled": lambda one: one.shuffle(seed=3),
    "in windows": lambda one: one.filter(even).shuffle(seed=3, window=200),
    "mixed": lambda one: ab.mix([one, one.map(lambda record: {**record})], seed=3),
    "concatenated": lambda one: ab.concat([one, one.filter(even)]),
}


@pytest.mark.parametrize("way", WAYS)
def test_rows_are_as_long_as_the_longest_of_their_batch(way):
    stream = WAYS[way](read())
    numbers = [int(record["n"]) for record in stream]
    for _ in range(2):
        batches = list(stream.batch(BATCH))
        assert [batch["r"].tolist() for batch in batches] == list(in_python(numbers))
        assert all(batch["r"].dtype == np.int64 for batch in batches)
    check_threads_and_chunks_change_nothing(stream.batch(BATCH))
    check_restores_before_every_element(stream.batch(BATCH))


@pytest.mark.parametrize("way", WAYS)
def test_parts_are_those_of_the_padded_batch(way):
    stream = WAYS[way](read()).batch(BATCH)
    rows = [row for part, _ in stream.parts(3) for row in part["r"].tolist()]
    assert rows == [row for batch in stream for row in batch["r"].tolist()]


def test_a_record_alone_is_as_long_as_it_is():
    for record in read():
        n = int(record["n"])
        assert type(record["r"]) is np.ndarray
        assert record["r"].tolist() == [n + step for step in range(n % 4)]


def test_what_a_function_makes_of_a_row_is_padded_like_the_row():
    stream = read().map(lambda record: {"n": record["n"], "r": record["r"] * 2})
    doubled = [
        [[value * 2 if value >= 0 else -1 for value in row] for row in rows] for rows in in_python(range(14))
    ]
    assert [batch["r"].tolist() for batch in stream.batch(BATCH)] == doubled


def test_a_cache_on_disk_pads_like_the_feature(tmp_path):
    features = {
        "n": ab.Numbers("int64"),
        "r": Padded("int64", default=7),
        "b": Padded("bytes", default=b"\0-"),
        "x": Padded("float32", (2,), default=float("nan")),
    }
    expected = elements(read(features).batch(BATCH))
    for _ in range(2):
        assert elements(read(features).cache(tmp_path).batch(BATCH)) == expected


def test_padding_counts():
    rows = [{"r": [1] * (100_000 if number == 5 else 1)} for number in range(64)]
    (path,) = ab.write(shards()[0] + ".wide", rows)
    stream = ab.read(path, {"r": Padded("int64")}).batch(64)
    assert next(iter(stream))["r"].shape == (64, 100_000)
    with pytest.raises(DoesNotFit):
        next(iter(stream.limit_memory("16MiB")))


def test_batches_are_those_of_tf_data():
    tf = pytest.importorskip("tensorflow")
    features = {
        "n": tf.io.FixedLenFeature((), tf.int64),
        "r": tf.io.FixedLenSequenceFeature((), tf.int64, allow_missing=True, default_value=-1),
        "x": tf.io.FixedLenSequenceFeature((2,), tf.float32, allow_missing=True),
    }
    files = tf.data.TFRecordDataset(shards())
    theirs = files.batch(BATCH).map(lambda batch: tf.io.parse_example(batch, features))
    records = files.map(lambda one: tf.io.parse_single_example(one, features))
    for ours in [
        read(features).batch(BATCH),
        read(features).cache().batch(BATCH),
        read(features).batch(BATCH).to_tf(),
    ]:
        check_same(ours, theirs)
    check_same(read(features), records)
    padding = {"n": np.int64(0), "r": np.int64(-1), "x": np.float32(0)}
    kept = records.filter(lambda one: one["n"] % 2 == 0).padded_batch(BATCH, padding_values=padding)
    check_same(read(features).filter(even).batch(BATCH), kept)


def check_same(ours, theirs):
    for mine, other in zip(ours, theirs, strict=True):
        for name, column in mine.items():
            np.testing.assert_array_equal(np.asarray(column), other[name].numpy())
