"""What is said about batches from a shuffle buffer is what such a buffer does."""

from random import Random

import numpy as np
import pytest

from anybatch.doctor.measure.facts import LabelFacts
from anybatch.doctor.mixing import GOOD_ENOUGH, buffered_mix, smallest_buffer, stored_mix

RNG = np.random.default_rng(0)
ORDERS = {
    "sorted": np.sort(RNG.integers(0, 10, 20_000)),
    "two halves": np.repeat([0, 1], 10_000),
    "runs of fifty": np.repeat(RNG.integers(0, 5, 400), 50),
    "random": RNG.integers(0, 10, 20_000),
}


def labels(codes):
    codes = np.asarray(codes)
    return LabelFacts("label", codes, tuple(range(codes.max() + 1)), continuous=False)


def through_a_buffer(codes, size, seed):
    """tf.data's shuffle, as its documentation has it."""
    random, buffer, drawn = Random(seed), list(codes[:size]), []
    for one in codes[size:]:
        at = random.randrange(size)
        drawn.append(buffer[at])
        buffer[at] = one
    random.shuffle(buffer)
    return np.array(drawn + buffer)


@pytest.mark.parametrize("buffer", [200, 1000, 4000, 16_000])
@pytest.mark.parametrize("order", ORDERS)
def test_the_predicted_mix_is_that_of_a_real_buffer(order, buffer):
    codes = ORDERS[order]
    predicted = buffered_mix(labels(codes), 32, buffer, len(codes)).excess
    drawn = [stored_mix(labels(through_a_buffer(codes.tolist(), buffer, seed)), 32).excess for seed in (1, 2)]
    assert predicted == pytest.approx(np.mean(drawn), rel=0.12)


@pytest.mark.parametrize("order", ORDERS)
def test_the_smallest_buffer_repairs_the_order_and_half_of_it_does_not(order):
    codes = ORDERS[order]
    needed = smallest_buffer(labels(codes), 32, len(codes))
    repaired = stored_mix(labels(through_a_buffer(codes.tolist(), needed, 3)), 32)
    assert repaired.excess < GOOD_ENOUGH * 1.1
    if order != "random":
        half = stored_mix(labels(through_a_buffer(codes.tolist(), needed // 2, 3)), 32)
        assert half.excess > GOOD_ENOUGH


@pytest.mark.parametrize("seed", range(20))
def test_random_order_is_never_called_off(seed):
    rng = np.random.default_rng(seed)
    codes = rng.choice(4, size=int(rng.integers(40, 3000)), p=[0.7, 0.2, 0.05, 0.05])
    assert not stored_mix(labels(codes), int(rng.integers(4, 64))).is_off


@pytest.mark.parametrize("order", ["sorted", "two halves", "runs of fifty"])
@pytest.mark.parametrize("every", [4, 10])
def test_a_sample_of_blocks_tells_what_all_records_tell(order, every):
    codes = ORDERS[order]
    blocks = codes[: len(codes) // 64 * 64].reshape(-1, 64)[::every].ravel()
    whole = buffered_mix(labels(codes), 32, 4000, len(codes)).excess
    assert buffered_mix(labels(blocks), 32, 4000, len(codes)).excess == pytest.approx(whole, rel=0.35)
