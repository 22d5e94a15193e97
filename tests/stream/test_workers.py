"""Several workers see together what one sees; and any number of them can go on where others stopped."""

import numpy as np
import pytest
from hypothesis import strategies as st

import anybatch as ab
from tests.stream.pipelines import (
    batches,
    from_files,
    from_memory,
    noisy,
    noisy_columns,
    not_a_third,
    records,
    seeds,
)
from tests.stream.stream_laws import (
    check_nothing_is_lost_or_repeated,
    check_workers_see_what_one_sees,
    elements,
    handed_over,
    law,
    opened,
    plain,
    split,
)

worker_counts = st.integers(1, 5)
stops = st.lists(st.integers(0, 12), min_size=1, max_size=5)


@law(st.one_of(records, batches), worker_counts, examples=30, soak=3000)
def test_workers_together_see_what_one_sees(stream, workers):
    check_workers_see_what_one_sees(stream, workers)


@law(st.integers(1, 5000), seeds, st.integers(1, 9), examples=20, soak=1000)
def test_shards_of_any_size_are_disjoint_complete_and_even(size, seed, workers):
    stream = from_memory(size).shuffle(seed=seed)
    parts = [stream.shard(workers, index) for index in range(workers)]
    assert sorted(int(n) for part in parts for batch in part.batch(512) for n in batch["n"]) == list(
        range(size)
    )
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def ordered_source(kind, seed):
    stream = from_files() if kind == "files" else from_memory(67)
    return stream if seed is None else stream.shuffle(seed=seed)


maybe_shuffled = st.one_of(st.none(), seeds)
kinds = st.sampled_from(["memory", "files"])
# what workers may have behind their shard
ends = st.sampled_from(
    [
        lambda stream: stream,
        lambda stream: stream.batch(3),
        lambda stream: stream.filter(not_a_third),
        lambda stream: stream.filter(not_a_third).batch(4).prefetch(1),
        lambda stream: stream.map(lambda record: record).batch(2).limit_memory("64MiB"),
    ]
)


@law(
    kinds,
    maybe_shuffled,
    ends,
    st.lists(stops, min_size=1, max_size=3),
    worker_counts,
    examples=60,
    soak=5000,
)
def test_workers_that_stopped_anywhere_can_be_followed_by_any_number(kind, seed, end, generations, last):
    source = ordered_source(kind, seed)
    check_nothing_is_lost_or_repeated(lambda *shard: end(source.shard(*shard)), generations, last)


@law(maybe_shuffled, ends, stops, worker_counts, examples=15, soak=1000)
def test_skip_take_and_map_before_the_shard_keep_their_meaning(seed, end, stopped, last):
    source = ordered_source("memory", seed).skip(7).take(50).map(lambda record: record)
    check_nothing_is_lost_or_repeated(lambda *shard: end(source.shard(*shard)), [stopped], last)


@law(maybe_shuffled, ends, stops, examples=10, soak=500)
def test_one_worker_needs_no_shard(seed, end, stopped):
    source = ordered_source("memory", seed)

    def worker(count, index):
        return end(source if count == 1 else source.shard(count, index))

    check_nothing_is_lost_or_repeated(worker, [stopped, [3]], 1)


def test_workers_may_hand_in_their_states_in_any_order():
    source = from_memory(40).shuffle(seed=1)
    iterators = [opened(source.shard(3, index)) for index in range(3)]
    seen = [
        plain(next(iterator))
        for iterator, count in zip(iterators, [2, 5, 1], strict=True)
        for _ in range(count)
    ]
    states = [iterator.get_state() for iterator in iterators]
    rest = opened(source)
    rest.set_state(states[::-1])
    assert sorted(map(repr, seen + elements(rest))) == sorted(map(repr, elements(source)))


def test_the_state_of_workers_that_keep_step_does_not_grow():
    source = from_memory(10_000).shuffle(seed=1)
    states, lengths = [], set()
    for generation in range(30):
        workers = 1 + generation % 5
        iterators = [opened(source.shard(workers, index).batch(8)) for index in range(workers)]
        for iterator in iterators:
            if states:
                iterator.set_state(states)
            next(iterator)
        states = [handed_over(iterator.get_state()) for iterator in iterators]
        lengths.add(len(str(states[0])))
    assert max(lengths) - min(lengths) < 20


class TestStatesThatDoNotFit:
    source = from_memory(40).shuffle(seed=1)

    def states(self, workers, end=lambda stream: stream):
        return [iter(end(self.source.shard(workers, index))).get_state() for index in range(workers)]

    def test_a_missing_worker_is_noticed(self):
        with pytest.raises(ValueError, match="shards 0 of 3, 2 of 3; all of one run are needed"):
            iter(self.source).set_state([self.states(3)[0], self.states(3)[2]])

    def test_a_worker_named_twice_is_noticed(self):
        with pytest.raises(ValueError, match="shards 0 of 2, 0 of 2"):
            iter(self.source).set_state([self.states(2)[0]] * 2)

    def test_no_states_at_all_are_noticed(self):
        with pytest.raises(ValueError, match="all of one run are needed"):
            iter(self.source).set_state([])

    def test_another_workers_state_alone_is_refused(self):
        with pytest.raises(ValueError, match="list of the states of all workers"):
            iter(self.source.shard(2, 1)).set_state(self.states(2)[0])

    def test_states_of_another_stream_are_refused(self):
        with pytest.raises(ValueError, match="taken from another stream"):
            iter(self.source.batch(3)).set_state(self.states(2))

    @pytest.mark.parametrize("state", [None, 7, {}, "state", {"version": 99}, [None], [7]])
    def test_what_is_no_state_is_refused(self, state):
        with pytest.raises(ValueError, match="no state of a stream"):
            iter(self.source).set_state(state)

    def test_an_order_behind_the_shard_cannot_change_workers(self):
        worker = self.source.shard(2, 0).take(5)
        states = self.states(2, lambda stream: stream.take(5))
        with pytest.raises(ValueError, match="take comes behind shard; put it before"):
            iter(worker).set_state(states)

    def test_a_shuffle_behind_the_shard_cannot_change_workers(self):
        states = self.states(2, lambda stream: stream.shuffle(seed=2))
        with pytest.raises(ValueError, match="shuffle comes behind shard; put it before"):
            iter(self.source.shard(3, 0).shuffle(seed=2)).set_state(states)
        with pytest.raises(ValueError, match="taken from another stream"):
            iter(self.source.shuffle(seed=2)).set_state(states)

    def test_a_shard_behind_a_filter_cannot_change_workers(self):
        source = self.source.filter(not_a_third)
        states = [iter(source.shard(2, index)).get_state() for index in range(2)]
        with pytest.raises(ValueError, match="put shard before filter and batch"):
            iter(source.shard(3, 0)).set_state(states)

    @pytest.mark.parametrize(
        "end", [lambda one: one.repeat(2), lambda one: ab.mix([one]), lambda one: ab.concat([one])]
    )
    def test_what_counts_epochs_or_streams_cannot_change_workers(self, end):
        states = self.states(2, end)
        with pytest.raises(
            ValueError, match="the number of workers cannot change; behind shard there may be"
        ):
            iter(end(self.source.shard(3, 0))).set_state(states)

    def test_what_only_concerns_memory_and_speed_may_change(self):
        iterator = iter(self.source.batch(4).limit_memory("1GiB").prefetch(3))
        next(iterator)
        again = iter(self.source.limit_memory("64MiB").batch(4))
        again.set_state(handed_over(iterator.get_state()))
        assert elements(again) == elements(iterator)


def by_number(batches):
    return {int(record["n"]): plain(record["x"]) for record in split(batches)}


@law(seeds, seeds, st.integers(0, 5), st.integers(1, 20), worker_counts, examples=15, soak=500)
def test_randomness_belongs_to_the_record_whoever_reads_it(order_seed, seed, epoch, batch, workers):
    source = from_memory(50).shuffle(seed=order_seed)
    for random in [
        lambda stream: stream.random_map(noisy, seed=seed).batch(batch),
        lambda stream: stream.random_map(noisy_columns, seed=seed, batched=True).batch(batch),
        lambda stream: stream.batch(batch).random_map(noisy_columns, seed=seed, batched=True),
    ]:
        expected = by_number(opened(random(from_memory(50)).epoch(epoch), threads=1, rows=1))
        assert len(expected) == 50
        assert by_number(random(source).epoch(epoch)) == expected
        parts = [by_number(random(source.shard(workers, index)).epoch(epoch)) for index in range(workers)]
        assert {number: value for part in parts for number, value in part.items()} == expected


def test_randomness_changes_from_epoch_to_epoch_and_seed_to_seed():
    def values(seed, epoch):
        return by_number(from_memory(100).random_map(noisy, seed=seed).epoch(epoch).batch(100))

    assert values(1, 0) == values(1, 0)
    assert values(1, 0) != values(2, 0)
    assert values(1, 0) != values(1, 1)


@pytest.mark.parametrize("batch", [1, 4, 7, 30])
def test_batches_across_epochs_keep_the_randomness_of_each(batch):
    def noise(stream):
        return stream.random_map(noisy_columns, seed=3, batched=True)

    source = from_memory(10).shuffle(seed=1)
    expected = [plain(record) for record in split(noise(source).repeat(3).batch(10))]
    assert [plain(record) for record in split(noise(source.repeat(3).batch(batch)))] == expected
    mixed = noise(ab.mix([source.repeat(3)], seed=2).batch(batch))
    assert [plain(record) for record in split(mixed)] == expected


def test_equal_records_of_different_streams_are_random_on_their_own():
    def streams(count):
        return [ab.from_arrays({"n": np.arange(8), "x": np.zeros((8, 1), np.float32)})] * count

    nested = ab.concat([ab.concat(streams(2)), ab.concat(streams(2)), *streams(1)])
    for stream in [nested, nested.batch(3), ab.mix([nested, *streams(1)]), ab.concat([nested.batch(2)])]:
        noise = (
            stream.random_map(noisy_columns, batched=True)
            if stream._stage.batched
            else stream.random_map(noisy)
        )
        values = [float(value) for element in noise for value in np.ravel(element["x"])]
        assert len(set(values)) > 0.9 * len(values)
