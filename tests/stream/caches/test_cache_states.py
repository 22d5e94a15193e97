# ruff: noqa: PT012, RUF043
"""A cached stream can be left and taken up anywhere, by any number of workers."""

import pytest

import anybatch as ab
from tests.shard_files import flipped
from tests.stream import pipelines
from tests.stream.caches.kept import contents, on_disk, orders, places, somewhere
from tests.stream.stream_laws import (
    check_nothing_is_lost_or_repeated,
    check_restores_before_every_element,
    check_threads_and_chunks_change_nothing,
    check_workers_see_what_one_sees,
    elements,
    law,
    opened,
)


@law(contents(), orders(), on_disk, examples=15, soak=300)
def test_a_cached_stream_can_be_left_and_taken_up_anywhere(stream, above, disk):
    check_restores_before_every_element(above(stream.cache(somewhere(disk))).batch(3))


@law(contents(), orders(), on_disk, examples=15, soak=300)
def test_states_fit_whether_the_cache_is_full_or_not(stream, above, disk):
    def described():
        return above(stream.cache(somewhere(disk))).batch(2)

    filling, full = described(), described()
    elements(full)
    states, whole = [], elements(filling)
    for one in (opened(described()), opened(full)):
        taken = []
        for _ in whole:
            taken.append(one.get_state())
            next(one)
        states.append(taken)
    assert states[0] == states[1]
    for at in range(0, len(whole), 2):
        for again in (opened(described()), opened(full)):
            again.set_state(states[0][at])
            assert elements(again) == whole[at:]


@law(orders(), on_disk, examples=15, soak=300)
def test_threads_and_chunks_change_nothing_about_a_cache(above, disk):
    check_threads_and_chunks_change_nothing(above(pipelines.from_files().cache(somewhere(disk))))


def test_workers_share_what_is_kept():
    for stream in (
        pipelines.from_files().cache().shuffle(seed=4),
        pipelines.from_files().shuffle(seed=4).cache(),
    ):
        check_workers_see_what_one_sees(stream, 3)


def test_the_number_of_workers_can_change_wherever_the_cache_holds_everything():
    stream = pipelines.from_files()
    for worker in (
        lambda count, index: stream.cache().shuffle(seed=4).shard(count, index),
        lambda count, index: stream.shuffle(seed=4).shard(count, index).cache(),
    ):
        check_nothing_is_lost_or_repeated(worker, [[2, 3], [1, 0, 2]], 2)


def test_the_number_of_workers_cannot_change_where_each_keeps_its_own_part():
    def worker(count, index):
        return pipelines.from_files().shard(count, index).cache()

    states = []
    for index in range(2):
        iterator = iter(worker(2, index))
        next(iterator)
        states.append(iterator.get_state())
    again = iter(worker(3, 0))
    with pytest.raises(ValueError, match="put shard behind cache|put it before|another stream"):
        again.set_state(states)
        next(again)


def test_damaged_records_are_left_out_in_the_same_places(tmp_path):
    path = tmp_path / "damaged.tfrecord"
    ab.write(path, map(pipelines.record_of, range(40)))
    content = path.read_bytes()
    for where in (100, 1500, len(content) - 20):
        content = flipped(content, where)
    path.write_bytes(content)

    def stream():
        return ab.read(path, pipelines.FEATURES, on_corrupt="skip")

    expected, damages = [elements(stream().shuffle(seed=5).batch(4).epoch(e)) for e in range(3)], stream()
    list(damages)
    for place in places(tmp_path):
        kept = stream().cache(place).shuffle(seed=5).batch(4)
        assert [elements(kept.epoch(epoch)) for epoch in (0, 1, 2)] == expected
        assert sorted(kept.corrupt) == sorted(damages.corrupt)
        check_restores_before_every_element(kept)
        later = stream().cache(place).shuffle(seed=5).batch(4)
        assert elements(later.epoch(1)) == expected[1]
        assert sorted(later.corrupt) == sorted(damages.corrupt)
        in_order = stream().cache(place and tmp_path / "in order").batch(4)
        assert elements(in_order) == elements(in_order) == elements(stream().batch(4))


@law(contents(), on_disk, examples=15, soak=300)
def test_cached_batches_can_be_left_and_taken_up_anywhere(stream, disk):
    check_restores_before_every_element(stream.batch(3).cache(somewhere(disk)))
