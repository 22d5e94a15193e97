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


def test_a_part_and_smaller_ones_are_timed_in_turns_and_what_each_usually_takes_counts():
    clock = Clock(seconds_of(0.14, 0.14, 0.13, 0.14, 0.14))
    seen = {pace.part: pace for pace in paces(clock, 128, 256)}
    assert {part: pace.seconds for part, pace in seen.items()} == pytest.approx(clock.seconds)
    assert {part: pace.rise_bytes for part, pace in seen.items()} == {part: 1000 * part for part in SIZES}
    assert clock.asked == SIZES * (len(clock.asked) // len(SIZES))
    assert ROUNDS < clock.asked.count(128) < MOST_ROUNDS


def test_one_lucky_round_does_not_decide():
    turns = {16: iter([0.10] * MOST_ROUNDS), 13: iter([0.09, *[0.11] * MOST_ROUNDS])}
    timed = paces(lambda part: Pace(part, next(turns.get(part, iter([0.2]))), 1), 16, 64)
    assert fastest(16, timed, 64) == 16


def test_updates_that_take_no_time_are_timed_more_often():
    clock = Clock(seconds_of(0.031, 0.03, 0.031, 0.03, 0.032))
    paces(clock, 128, 256)
    assert clock.asked == SIZES * MOST_ROUNDS


def test_what_is_clearly_slower_is_not_timed_again():
    clock = Clock(seconds_of(0.10, 0.04, 0.041, 0.045, 0.04))
    seen = {pace.part: pace.seconds for pace in paces(clock, 128, 256)}
    asked = {part: clock.asked.count(part) for part in SIZES}
    assert asked[128] == ROUNDS < asked[43] < asked[86] == asked[64] == asked[32] == MOST_ROUNDS
    assert seen == pytest.approx(clock.seconds)


def test_when_only_one_is_left_nothing_is_timed_any_more():
    clock = Clock(seconds_of(0.10, 0.04, 0.10, 0.10, 0.10))
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


def test_where_nothing_goes_back_timing_ends_before_memory_does():
    rises = iter([80, 80, 80, 80, 80, 95, 95, 95, 109, 130])
    seen = paces(lambda part: Pace(part, 0.03, next(rises)), 128, 256, most_bytes=120)
    assert max(pace.rise_bytes for pace in seen) == 109
    assert {pace.part for pace in seen} == set(SIZES)


def test_a_part_that_has_never_grown_may_fill_what_there_is():
    clock = Clock(seconds_of(0.031, 0.03, 0.031, 0.03, 0.032))
    paces(clock, 128, 256, most_bytes=129_000)
    assert clock.asked == SIZES * MOST_ROUNDS
