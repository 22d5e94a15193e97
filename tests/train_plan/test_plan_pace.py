"""The part that is trained with is the fastest of those that fit, as far as a moment tells."""

import pytest

from anybatch.train.plan_pace import MOST_ROUNDS, ROUNDS, Pace, fastest, paces


class Clock:
    """Gives each part its seconds, the first time more, and counts how often it was asked."""

    def __init__(self, seconds, *, fails_at=None):
        self.seconds, self.fails_at, self.asked = seconds, fails_at, []

    def __call__(self, part):
        self.asked.append(part)
        if part == self.fails_at:
            return None
        first = self.asked.count(part) == 1
        return Pace(part, self.seconds[part] * (1.5 if first else 1.0), 1000 * part - first)


SIZES = [128, 86, 64, 43, 32]
"""Two parts of 256, then three, four, six and eight."""


def seconds_of(*seconds):
    return dict(zip(SIZES, seconds, strict=True))


def test_a_part_and_smaller_ones_are_timed_in_turns_and_the_best_of_each_counts():
    clock = Clock(seconds_of(0.52, 0.51, 0.50, 0.50, 0.49))
    best = {Pace(part, seconds, 1000 * part) for part, seconds in clock.seconds.items()}
    assert set(paces(clock, 128, 256)) == best
    assert clock.asked == SIZES * ROUNDS


def test_updates_that_take_no_time_are_timed_more_often():
    clock = Clock(seconds_of(0.031, 0.03, 0.031, 0.03, 0.032))
    paces(clock, 128, 256)
    assert clock.asked == SIZES * MOST_ROUNDS


def test_what_is_clearly_slower_is_not_timed_again():
    clock = Clock(seconds_of(0.05, 0.04, 0.041, 0.05, 0.06))
    seen = {pace.part: pace.seconds for pace in paces(clock, 128, 256)}
    assert clock.asked == SIZES * ROUNDS + [86, 64] * (MOST_ROUNDS - ROUNDS)
    assert seen == pytest.approx(clock.seconds)
    clock = Clock(seconds_of(0.05, 0.04, 0.05, 0.05, 0.06))
    paces(clock, 128, 256)
    assert clock.asked == SIZES * ROUNDS


def test_updates_that_take_long_are_timed_once():
    clock = Clock(seconds_of(4.0, 4.0, 4.0, 3.5, 3.0))
    paces(clock, 128, 256)
    assert clock.asked == SIZES


def test_small_parts_are_not_cut_further():
    clock = Clock({16: 0.1, 13: 0.1, 8: 0.1})
    paces(clock, 16, 64)
    assert set(clock.asked) == {16, 13, 8}
    assert paces(Clock({}), 8, 64) == ()


def test_what_does_not_fit_after_all_is_not_asked_for_again():
    clock = Clock(seconds_of(0.4, 0.4, 0.3, 0.3, 0.3), fails_at=64)
    seen = {pace.part: pace.seconds for pace in paces(clock, 128, 256)}
    assert seen == pytest.approx({128: 0.6, 86: 0.6, 43: 0.45, 32: 0.45})
    assert clock.asked == SIZES


@pytest.mark.parametrize(
    ("large", "small", "chosen"), [(1.0, 0.8, 32), (1.0, 0.99, 128), (1.0, 1.2, 128)], ids=str
)
def test_a_smaller_part_is_chosen_only_if_it_is_faster(large, small, chosen):
    assert fastest(128, [Pace(32, small, 1), Pace(128, large, 4)], 256) == chosen


def test_what_was_timed_under_another_limit_is_of_use_as_far_as_it_fits():
    timed = [Pace(32, 0.8, 1), Pace(128, 1.0, 4)]
    assert [fastest(part, timed, 1024) for part in (300, 100, 20)] == [32, 100, 20]
    assert fastest(100, [], 1024) == 100


def test_a_batch_that_fits_whole_stays_whole():
    assert fastest(256, [Pace(32, 0.8, 1), Pace(128, 1.0, 4)], 256) == 256


def test_a_part_timed_for_another_batch_is_made_even():
    assert fastest(200, [Pace(32, 0.8, 1), Pace(128, 1.0, 4)], 300) == 30
