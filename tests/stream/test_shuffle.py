"""An exact shuffle: everything once, in an order of chance that the seed and the epoch decide."""

from collections import Counter
from itertools import pairwise
from math import comb

import numpy as np
import pytest
from hypothesis import strategies as st

import anybatch as ab
from tests.stream.pipelines import IN_FILES, from_files, from_memory, seeds
from tests.stream.stream_laws import (
    check_every_record_comes_once,
    check_threads_and_chunks_change_nothing,
    chi_square,
    chi_square_limit,
    elements,
    law,
    numbers,
)

sizes = st.one_of(st.integers(1, 40), st.integers(1, 5000))
epochs = st.integers(0, 2**40)
batch_sizes = st.one_of(st.integers(1, 700), st.just(5000))


@law(sizes, seeds, epochs, batch_sizes, examples=60, soak=5000)
def test_every_record_comes_once_per_epoch(size, seed, epoch, batch):
    check_every_record_comes_once(from_memory(size).shuffle(seed=seed).epoch(epoch).batch(batch), size)


@law(seeds, epochs, st.integers(1, 30), examples=20, soak=1000)
def test_every_record_of_files_comes_once_per_epoch(seed, epoch, batch):
    check_every_record_comes_once(from_files().shuffle(seed=seed).epoch(epoch).batch(batch), IN_FILES)


@law(sizes, seeds, epochs, batch_sizes, examples=8, soak=500)
def test_the_same_seed_gives_the_same_batches_for_any_number_of_threads(size, seed, epoch, batch):
    check_threads_and_chunks_change_nothing(from_memory(size).shuffle(seed=seed).epoch(epoch).batch(batch))


@law(seeds, epochs, st.integers(1, 30), examples=8, soak=500)
def test_the_same_seed_gives_the_same_batches_of_files_for_any_number_of_threads(seed, epoch, batch):
    check_threads_and_chunks_change_nothing(from_files().shuffle(seed=seed).epoch(epoch).batch(batch))


def test_the_number_of_cores_changes_nothing(monkeypatch):
    stream = from_files().shuffle(seed=3).map(lambda record: record).batch(5)
    expected = elements(list(stream))
    for cores in [1, 2, 7]:
        monkeypatch.setattr("os.sched_getaffinity", lambda _, cores=cores: set(range(cores)))
        assert elements(list(stream)) == expected


def test_iterating_again_is_epoch_0_again():
    stream = from_memory(100).shuffle(seed=1).batch(7)
    assert elements(stream) == elements(stream) == elements(stream.epoch(0))


@law(seeds, seeds, epochs, epochs, examples=40, soak=2000)
def test_different_seeds_and_epochs_differ(seed, other_seed, epoch, other_epoch):
    def order(*which):
        return numbers(from_memory(1000).shuffle(seed=which[0]).epoch(which[1]).batch(1000))

    if (seed, epoch) != (other_seed, other_epoch):
        agreeing = np.equal(order(seed, epoch), order(other_seed, other_epoch)).sum()
        # by chance one of them stands where it stood, and never 15
        assert agreeing < 15


@law(st.integers(1, 60), seeds, st.integers(1, 5), st.integers(1, 9), examples=30, soak=1000)
def test_an_epoch_is_what_repeat_gives_in_its_place(size, seed, times, batch):
    stream = from_memory(size).shuffle(seed=seed).batch(batch)
    parts = [element for epoch in range(times) for element in elements(stream.epoch(epoch))]
    assert elements(stream.repeat(times)) == parts
    assert elements(stream.repeat().take(len(parts))) == parts


def test_repeats_in_repeats_go_on_counting_epochs():
    stream = from_memory(20).shuffle(seed=1).batch(20)
    assert elements(stream.repeat(2).repeat(3)) == elements(stream.repeat(6))
    assert elements(stream.repeat(2).epoch(2)) == elements(stream.epoch(4)) + elements(stream.epoch(5))


def test_a_negative_seed_and_one_beyond_64_bits_are_seeds():
    orders = {tuple(numbers(from_memory(50).shuffle(seed=seed))) for seed in [-1, 1, np.int64(2), 2**70 + 5]}
    assert len(orders) == 4


def test_class_sorted_data_gives_batches_as_random_draws_would():
    """Article 004: the first half of the data is one class, the second half another."""
    records, batch_size, runs = 6_000, 50, 40
    stream = ab.from_arrays({"label": np.repeat([0, 1], records // 2)})
    counts: Counter[int] = Counter()
    for seed in range(runs):
        batches = stream.shuffle(seed=seed).epoch(seed % 3).batch(batch_size)
        counts.update(int(batch["label"].sum()) for batch in batches)
    check_drawn_without_putting_back(counts, records, batch_size)


def test_the_first_batch_of_class_sorted_data_is_a_random_draw_too():
    stream = ab.from_arrays({"label": np.repeat([0, 1], 500)})
    firsts = (next(iter(stream.shuffle(seed=5).epoch(epoch).batch(20))) for epoch in range(2_000))
    check_drawn_without_putting_back(Counter(int(batch["label"].sum()) for batch in firsts), 1_000, 20)


def check_drawn_without_putting_back(counts, records, batch_size):
    """Compare how many of one class the batches have with the hypergeometric distribution."""
    half, batches = records // 2, sum(counts.values())
    chances = [
        comb(half, k) * comb(half, batch_size - k) / comb(records, batch_size) for k in range(batch_size + 1)
    ]
    common = [k for k, chance in enumerate(chances) if chance * batches >= 8]
    rare = 1 - sum(chances[k] for k in common)
    seen = [counts[k] for k in common] + [batches - sum(counts[k] for k in common)]
    expected = [chances[k] * batches for k in common] + [rare * batches]
    assert chi_square(seen, expected) < chi_square_limit(len(common))


@pytest.mark.parametrize("size", [5, 24])
def test_over_epochs_every_record_comes_to_every_position_equally_often(size):
    counts = np.zeros((size, size))
    rounds = 1_500
    for order in orders_of(size, rounds):
        counts[np.arange(size), order] += 1
    assert chi_square(counts, rounds / size) < chi_square_limit((size - 1) ** 2)


def test_over_epochs_neighbours_stay_neighbours_no_more_often_than_by_chance():
    size, rounds = 100, 1_500
    steps = np.array([np.diff(order) % size for order in orders_of(size, rounds)])
    counts = np.bincount(steps.ravel(), minlength=size)[1:]
    assert chi_square(counts, steps.size / (size - 1)) < chi_square_limit(size - 2)


def test_consecutive_epochs_know_nothing_of_each_other():
    size, rounds = 100, 1_500
    orders = list(orders_of(size, rounds))
    kept_places = Counter(int(np.equal(a, b).sum()) for a, b in pairwise(orders))
    # how many places two random orders have in common follows Poisson's law with mean 1
    expected = np.exp(-1) / np.array([1, 1, 2, 6, 24]) * (rounds - 1)
    seen = [kept_places[places] for places in range(5)]
    assert chi_square(seen, expected) < chi_square_limit(5)


def orders_of(size, rounds):
    stream = from_memory(size).shuffle(seed=11).batch(size)
    return (np.asarray(batch["n"]) for batch in stream.repeat(rounds))


ONCE = {"seed": 1, "reshuffle_each_iteration": False}
SHUFFLED_ONCE = {
    "exactly": lambda: from_memory(40).shuffle(**ONCE),
    "block-wise": lambda: from_memory(40).shuffle(**ONCE, window="1KiB"),
    "in windows": lambda: from_memory(40).filter(lambda _: True).shuffle(**ONCE, window="200B"),
    "files": lambda: from_files().shuffle(**ONCE),
    "cached": lambda: from_memory(40).shuffle(**ONCE).cache(),
}


@pytest.mark.parametrize("how", SHUFFLED_ONCE)
def test_what_is_shuffled_once_has_the_order_of_epoch_0_in_every_epoch(how):
    stream = SHUFFLED_ONCE[how]()
    first = numbers(stream)
    assert first != sorted(first)
    assert numbers(stream.epoch(3)) == first
    assert numbers(stream.repeat(3)) == first * 3


@pytest.mark.parametrize("how", SHUFFLED_ONCE)
def test_a_split_of_what_is_shuffled_once_never_leaks(how):
    stream = SHUFFLED_ONCE[how]()
    held_out = set(numbers(stream.take(5)))
    for epoch in range(4):
        assert held_out.isdisjoint(numbers(stream.skip(5).epoch(epoch)))


def test_what_is_shuffled_once_can_be_shuffled_anew_behind_a_split():
    training = from_memory(40).shuffle(**ONCE).skip(5).shuffle(seed=2)
    assert numbers(training.epoch(0)) != numbers(training.epoch(1))
    assert sorted(numbers(training.epoch(0))) == sorted(numbers(training.epoch(1)))


def test_a_state_knows_whether_a_shuffle_is_made_anew():
    state = iter(from_memory(40).shuffle(seed=1)).get_state()
    with pytest.raises(ValueError, match="another stream"):
        iter(from_memory(40).shuffle(**ONCE)).set_state(state)
