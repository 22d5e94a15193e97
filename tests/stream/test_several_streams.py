"""Several streams as one: nothing is lost, order within each is kept, and chance follows the weights."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import strategies as st

import anybatch as ab
from anybatch.errors import DoesNotFit
from tests.stream.pipelines import doubled, from_memory, seeds
from tests.stream.stream_laws import (
    check_restores_before_every_element,
    check_threads_and_chunks_change_nothing,
    chi_square,
    chi_square_limit,
    elements,
    law,
    numbers,
)

counts = st.lists(st.integers(0, 40), min_size=1, max_size=4)


def sources(sizes):
    """Return streams whose numbers tell which of them a record comes from."""
    return [from_memory(size, first=1000 * which) for which, size in enumerate(sizes)]


@law(counts, seeds, st.integers(1, 9), examples=30, soak=2000)
def test_a_mix_gives_every_record_once_and_each_stream_in_its_order(sizes, seed, batch):
    streams = sources(sizes)
    mixed = numbers(ab.mix(streams, seed=seed).batch(batch))
    for which, stream in enumerate(streams):
        assert [number for number in mixed if number // 1000 == which] == numbers(stream)
    assert len(mixed) == len(ab.mix(streams)) == sum(sizes)


@law(counts, st.integers(1, 9), examples=20, soak=1000)
def test_streams_one_behind_the_other_are_those_streams(sizes, batch):
    streams = sources(sizes)
    joined = ab.concat(streams)
    assert elements(joined) == [element for stream in streams for element in elements(stream)]
    assert len(joined.batch(batch)) == len(elements(joined.batch(batch))) == -(-sum(sizes) // batch)


def test_a_mix_draws_by_weight():
    weights = [1, 2, 5, 0]
    drawn = Counter(number // 10_000 for number in numbers(endless_mix(weights, seed=3).batch(500).take(40)))
    assert drawn[3] == 0
    expected = np.array(weights[:3]) / 8 * 20_000
    assert chi_square([drawn[which] for which in range(3)], expected) < chi_square_limit(2)


def test_a_stream_without_weight_does_not_count_towards_the_length():
    mixed = ab.mix(sources([3, 5]), [1, 0])
    assert len(mixed) == len(numbers(mixed)) == 3
    endless = from_memory(5).repeat()
    assert len(ab.mix([from_memory(3), endless], [1, 0])) == 3


def test_what_a_mix_draws_next_does_not_depend_on_what_it_drew_before():
    which = [number // 10_000 for number in numbers(endless_mix([1, 1], seed=4).batch(500).take(40))]
    pairs = Counter(zip(which[::2], which[1::2], strict=True))
    assert chi_square([pairs[a, b] for a in range(2) for b in range(2)], 2_500) < chi_square_limit(3)


def endless_mix(weights, seed):
    streams = [from_memory(1000, first=10_000 * which).repeat() for which in range(len(weights))]
    return ab.mix(streams, weights, seed=seed)


def test_a_stream_that_has_ended_leaves_its_share_to_the_others():
    mixed = numbers(ab.mix(sources([3, 500]), [0.99, 0.01], seed=1))
    assert sorted(mixed) == [0, 1, 2, *range(1000, 1500)]


def test_seeds_and_epochs_mix_differently():
    mixed = ab.mix(sources([50, 50]), seed=1)
    orders = [numbers(mixed), numbers(mixed.epoch(1)), numbers(ab.mix(sources([50, 50]), seed=2))]
    assert len({tuple(order) for order in orders}) == 3
    assert orders[0] == numbers(mixed)


@pytest.mark.parametrize("join", [ab.mix, ab.concat])
def test_batches_can_be_joined_too(join):
    streams = [stream.batch(4) for stream in sources([10, 7])]
    joined = join(streams)
    assert Counter(map(repr, elements(joined))) == Counter(
        repr(one) for stream in streams for one in elements(stream)
    )
    assert len(joined) == 5


def columns_in_another_order():
    one = ab.from_arrays({"x": np.zeros(8), "y": np.ones(8)})
    other = ab.from_arrays({"y": np.ones(8), "x": np.zeros(8)})
    return ab.concat([one, other])


def test_a_cache_keeps_columns_by_their_names():
    stream = columns_in_another_order().cache()
    assert len(list(stream)) == 16
    assert [(record["x"], record["y"]) for record in stream] == [(0, 1)] * 16


def test_datasets_have_columns_by_their_names():
    pytest.importorskip("tensorflow")
    for batch in columns_in_another_order().batch(4).to_tf():
        assert (batch["x"].numpy() == 0).all()
        assert (batch["y"].numpy() == 1).all()


@pytest.mark.parametrize("streams", [1, 2, 5])
@pytest.mark.parametrize("batch", [1, 8])
def test_a_mix_holds_no_more_than_it_is_promised(streams, batch):
    rows = ab.from_arrays({"n": np.arange(200), "x": np.zeros((200, 1 << 14), np.uint8)})
    mixed = ab.mix([rows.shuffle(seed=seed) for seed in range(streams)], seed=1)
    limited = mixed.batch(batch).limit_memory("2MiB")
    assert len(numbers(limited)) == 200 * streams
    account = next(stage for stage in limited.stats() if stage["stage"].startswith("mix"))
    assert 0 < account["peak_bytes"] <= account["bound_bytes"]
    assert account["held_bytes"] == 0


def test_rows_that_a_mix_cannot_hold_are_refused():
    rows = ab.from_arrays(np.zeros((8, 1 << 20), np.uint8))
    with pytest.raises(DoesNotFit, match="mix") as refusal:
        list(ab.mix([rows, rows]).limit_memory("3MiB"))
    assert len(list(ab.mix([rows, rows]).limit_memory(refusal.value.enough))) == 16


@pytest.mark.parametrize("end", [lambda one: one, lambda one: one.batch(3)])
def test_neither_limits_nor_chunks_change_what_a_mix_draws(end):
    streams = [from_memory(50), from_memory(40).map(doubled), from_memory(7)]
    mixed = end(ab.mix(streams, [1, 2, 1], seed=4))
    expected = elements(mixed)
    for limit in ["20KB", "200KB", "2GiB"]:
        assert elements(mixed.limit_memory(limit)) == expected
    check_threads_and_chunks_change_nothing(mixed)
    check_restores_before_every_element(mixed)
