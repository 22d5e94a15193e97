# ruff: noqa: RUF043
"""A cache gives the same records in the same order, whatever stands below and above it."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import strategies as st

import anybatch as ab
from anybatch.stream.layout import CannotStore
from tests.stream import pipelines
from tests.stream.caches.kept import contents, on_disk, orders, places, somewhere
from tests.stream.stream_laws import (
    check_restores_before_every_element,
    elements,
    law,
    numbers,
)


def test_every_kind_of_column_comes_back_as_it_was(of_all_kinds, tmp_path):
    for make in (
        lambda stream: stream,
        lambda stream: stream.shuffle(seed=3).batch(8),
        lambda stream: stream.map(lambda record: {**record, "dense": record["dense"] * 2}).batch(5),
    ):
        plainly = make(of_all_kinds)
        for place in places(tmp_path):
            kept = make(of_all_kinds.cache(place))
            for epoch in (0, 1, 1, 2):
                assert elements(kept.epoch(epoch)) == elements(plainly.epoch(epoch))


def test_lists_in_lists_come_back_as_they_were(tmp_path):
    def nested(record):
        return {"n": record["n"], "r": [record["r"], record["r"][:1]]}

    stream = pipelines.from_files().batch(4)
    kept = stream.map(nested_lists).cache(tmp_path / "cache")
    assert elements(kept) == elements(kept) == elements(stream.map(nested_lists))


def nested_lists(batch):
    steps = ab.records.RaggedColumn(batch["r"], np.arange(len(batch["r"]) + 1))
    return {"n": batch["n"], "steps": steps}


_IN_PLACE = ["map", "columns", "random", "filter", "take", "skip", "shard", "prefetch"]


@law(contents(), on_disk, examples=40, soak=1500)
def test_a_cache_gives_what_is_below_it_every_time(stream, disk):
    kept = stream.cache(somewhere(disk))
    expected = elements(stream)
    for epoch in (0, 1, 2):
        # what is random below a cache happened once
        assert elements(kept.epoch(epoch)) == expected


@law(st.booleans(), orders(), orders(), on_disk, examples=60, soak=2000)
def test_order_means_the_same_below_and_above_a_cache(files, below, above, disk):
    source = pipelines.from_files() if files else pipelines.from_memory(13)
    stream = below(source.map(pipelines.doubled))
    expected = above(stream)
    kept = above(stream.cache(somewhere(disk)))
    for epoch in (0, 1, 0, 2):
        assert elements(kept.epoch(epoch)) == elements(expected.epoch(epoch))


@law(orders(), on_disk, examples=25, soak=500)
def test_what_a_filter_kept_is_shuffled_exactly(above, disk):
    of_kept = [number for number in range(14) if number % 3]
    dense = ab.from_arrays({"n": np.array(of_kept)})
    kept = pipelines.from_files().filter(pipelines.not_a_third).cache(somewhere(disk))
    for epoch in (0, 1):
        assert numbers(above(kept).epoch(epoch)) == numbers(above(dense).epoch(epoch))


def test_every_epoch_is_shuffled_anew(of_all_kinds, tmp_path):
    for stream in (of_all_kinds.shuffle(seed=1).cache(), of_all_kinds.cache(tmp_path).shuffle(seed=1)):
        seen = [[int(one["scalar"]) for one in stream.epoch(epoch)] for epoch in range(5)]
        assert all(sorted(one) == list(range(57)) for one in seen)
        assert len({tuple(one) for one in seen}) == 5


def test_a_function_is_called_once_per_record(tmp_path):
    for place in places(tmp_path):
        calls = []

        def counted(record, calls=calls):
            calls.append(int(record["n"]))
            return record

        stream = pipelines.from_files().map(counted).cache(place).shuffle(seed=2).batch(3)
        for epoch in range(3):
            list(stream.epoch(epoch))
        assert sorted(calls) == list(range(pipelines.IN_FILES))


def test_streams_on_one_cache_share_it():
    calls = []
    kept = pipelines.from_memory(20).map(lambda record: calls.append(1) or record).cache()
    assert sorted(numbers(kept.skip(5).shuffle(seed=1)) + numbers(kept.take(5))) == list(range(20))
    assert len(calls) == 20


def test_looking_at_the_first_records_does_not_fill_a_cache():
    calls = []
    stream = pipelines.from_memory(9000).map(lambda record: calls.append(1) or record)
    for kept in (
        stream.cache().take(3),
        stream.cache().batch(3).take(1),
        stream.filter(bool).cache().take(3),
    ):
        calls.clear()
        assert numbers(kept) == [0, 1, 2]
        assert len(calls) < 9000


def test_a_cache_is_full_before_anybody_asks_for_one_more():
    calls = []
    kept = pipelines.from_memory(20).map(lambda record: calls.append(1) or record).cache().shuffle().batch(5)
    list(islice(iter(kept), 4))
    list(kept)
    assert len(calls) == 20


def test_batches_are_kept_as_they_are(tmp_path):
    def summed(batch):
        return {"sum": batch["x"].sum(axis=1), "n": batch["n"]}

    for place in places(tmp_path):
        stream = pipelines.from_files().batch(4).map(summed)
        kept = stream.cache(place)
        assert elements(kept) == elements(kept) == elements(stream)
        assert elements(kept.take(2)) == elements(stream)[:2]
        assert sorted(elements(kept.shuffle(seed=1)), key=str) == sorted(elements(stream), key=str)
        check_restores_before_every_element(kept.shuffle(seed=1))


def test_records_of_one_length_by_chance_are_lists_when_others_differ(tmp_path):
    lengths = [2] * 300 + [3, 1, 0]
    stream = ab.from_arrays(np.array(lengths)).map(lambda n: {"list": np.arange(n)})
    for place in places(tmp_path):
        kept = stream.cache(place)
        for _ in range(2):
            assert [one["list"].tolist() for one in kept] == [list(range(n)) for n in lengths]


def test_a_cache_on_a_cache_holds_what_came_out_of_the_first(tmp_path):
    stream = pipelines.from_files()
    kept = stream.shuffle(seed=1).cache().map(pipelines.doubled).cache(tmp_path).batch(3)
    for epoch in (0, 1, 2):
        expected = stream.map(pipelines.doubled).shuffle(seed=1).batch(3).epoch(epoch)
        assert elements(kept.epoch(epoch)) == elements(expected)


def test_batches_are_aligned_and_belong_to_the_consumer(of_all_kinds, tmp_path):
    for place in places(tmp_path):
        for kept in (of_all_kinds.cache(place).batch(8), of_all_kinds.cache(place).shuffle(seed=1).batch(8)):
            expected = elements(kept)
            for batch in kept:
                for array in (batch["dense"], batch["lists"].values, batch["bytes"].values):
                    assert array.flags.writeable
                    assert not array.size or array.ctypes.data % 64 == 0
                batch["dense"][...] = -1
                batch["lists"].values[...] = -1
            assert elements(kept) == expected


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda s: s.shuffle().batch(4).cache(), "put cache before batch"),
        (lambda s: s.shuffle().batch(4).map(dict).cache(), "put cache before batch"),
        (lambda s: s.repeat(2).cache(), "before repeat"),
        (lambda s: s.repeat().take(4).cache(), "before repeat"),
        (lambda s: ab.mix([s, s]).cache(), "each of the streams"),
        (lambda s: ab.concat([s.shuffle(), s]).cache(), "each of the streams"),
        (lambda s: s.shuffle().take(5).filter(bool).cache(), "before the shuffle"),
    ],
)
def test_what_a_cache_cannot_hold_is_refused_when_it_is_described(make, says):
    with pytest.raises(ValueError, match=says):
        make(pipelines.from_memory(10))


def test_columns_that_have_no_bytes_are_refused_by_name():
    stream = pipelines.from_memory(3).map(lambda record: {"thing": np.array([object()])})
    with pytest.raises(CannotStore, match="`thing`.*object"):
        list(stream.cache())


def test_batches_of_different_shapes_are_refused():
    stream = pipelines.from_files().batch(3).map(lambda batch: {"r": batch["r"].to_padded()})
    with pytest.raises(CannotStore, match=r"`r`.*shape"):
        list(stream.cache())
