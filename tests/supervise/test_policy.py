import time
from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anybatch.handover import Heartbeat, Orders, Pulse
from anybatch.supervise.attempt import Task
from anybatch.supervise.growth import Growth, growth_of
from anybatch.supervise.observe import boot, restarted_since
from anybatch.supervise.policy import Attempt, Restart, Stop, after_silence, next_try
from anybatch.supervise.run import _first_orders
from anybatch.supervise.verdict import OF_MEMORY, Cause, Verdict

LIMIT = 1 << 30
ORDERS = Orders(limit_bytes=LIMIT)
NEVER_RESTARTED = set(Cause) - OF_MEMORY - {Cause.KILLED, Cause.HANG, Cause.CRASH_IN_COMPANY}
memory_causes = st.sampled_from(sorted(OF_MEMORY))


def attempt(cause, orders=ORDERS, **more):
    return Attempt(
        orders, Verdict(cause, "it ended"), **({"trained": True, "last_step": 5, "part": 64} | more)
    )


@pytest.mark.parametrize("cause", sorted(NEVER_RESTARTED))
def test_what_a_restart_cannot_cure_is_not_restarted(cause):
    assert isinstance(next_try([attempt(cause)], retries=100), Stop)


@pytest.mark.parametrize("cause", sorted(set(Cause) - {Cause.FINISHED}))
def test_a_script_that_never_trains_is_not_restarted(cause):
    assert isinstance(next_try([attempt(cause, trained=False)], retries=100), Stop)


def test_a_script_killed_while_it_restarts_is_restarted_because_it_trained_before():
    attempts = [attempt(Cause.KILLED), attempt(Cause.KILLED, trained=False, part=0)]
    assert isinstance(next_try(attempts, retries=100), Restart)


@given(memory_causes, st.integers(2, 10**6))
def test_out_of_memory_means_smaller_parts_less_ahead_and_less_cache(cause, part):
    decision = next_try([attempt(cause, part=part)], retries=1)
    assert decision.orders.largest_part == part // 2
    assert decision.orders.prefetch == 2
    assert decision.orders.cache_bytes == LIMIT // 8
    assert decision.orders.attempt == 2


@given(memory_causes, st.integers(1, 10**6))
def test_shrinking_ends_at_one_sample_with_a_reason(cause, part):
    attempts = [attempt(cause, part=part)]
    while isinstance(decision := next_try(attempts, retries=10**6), Restart):
        orders = decision.orders
        assert orders != attempts[-1].orders
        attempts.append(attempt(cause, orders, part=orders.largest_part, last_step=len(attempts) + 6))
        assert len(attempts) < 40
    assert "one sample at a time" in decision.why
    assert attempts[-1].orders.largest_part == 1


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_there_are_as_many_restarts_as_allowed(retries):
    attempts = [attempt(Cause.KILLED)]
    while isinstance(next_try(attempts, retries=retries), Restart):
        attempts.append(attempt(Cause.KILLED))
    assert len(attempts) - 1 == retries


def test_what_has_nothing_to_do_with_memory_is_no_reason_for_smaller_parts():
    for cause in (Cause.KILLED, Cause.HANG, Cause.CRASH_IN_COMPANY):
        decision = next_try([attempt(cause)], retries=1)
        assert decision.orders == replace(ORDERS, attempt=2)


@pytest.mark.parametrize("cause", [Cause.HANG, Cause.CRASH_IN_COMPANY])
def test_ending_again_and_again_without_a_new_step_is_given_up(cause):
    stuck = [attempt(cause, first_step=5, last_step=5)] * 3
    assert isinstance(next_try(stuck[:2], retries=100), Restart)
    assert "before a new step" in next_try(stuck, retries=100).why


def test_hanging_is_borne_as_long_as_it_gets_further():
    further = [attempt(Cause.HANG, first_step=step, last_step=step + 5) for step in range(0, 50, 5)]
    assert isinstance(next_try(further, retries=100), Restart)


def test_being_killed_again_and_again_is_borne_up_to_the_allowed_restarts():
    assert isinstance(next_try([attempt(Cause.KILLED, last_step=0)] * 50, retries=100), Restart)


def test_a_leak_is_named_with_its_slope_and_not_met_with_smaller_parts():
    leaking = attempt(Cause.KILLED_FOR_MEMORY, growth=Growth(1 << 20, 100, 900))
    decision = next_try([leaking], retries=1)
    assert decision.orders == replace(ORDERS, attempt=2)
    assert "1 MiB per step" in decision.why
    assert "leak" in decision.why


def test_a_leak_that_leaves_no_room_for_a_new_step_is_given_up():
    leaking = attempt(Cause.KILLED_FOR_MEMORY, growth=Growth(1 << 20, 100, 900), first_step=5)
    assert isinstance(next_try([leaking] * 3, retries=100), Stop)


def test_dying_for_memory_before_the_first_step_shrinks_what_is_known_to_be_there():
    decision = next_try([attempt(Cause.KILLED_FOR_MEMORY, part=0)], retries=1)
    assert (decision.orders.largest_part, decision.orders.prefetch) == (None, 2)


def test_dying_for_memory_before_the_first_batch_is_not_called_one_sample_at_a_time():
    orders = replace(ORDERS, prefetch=1, cache_bytes=0)
    assert "before the first batch" in next_try([attempt(Cause.MEMORY_ERROR, orders, part=0)], retries=9).why


def test_a_run_that_ended_full_together_with_its_supervisor_continues_smaller():
    full = after_silence(ORDERS, held_bytes=LIMIT * 9 // 10, limit_bytes=LIMIT, part=64)
    assert full.orders.largest_part == 32
    assert "probably killed for memory" in full.why
    empty = after_silence(ORDERS, held_bytes=LIMIT // 10, limit_bytes=LIMIT, part=64)
    assert empty.orders.largest_part is None


def test_a_run_that_ended_full_with_the_whole_machine_continues_as_it_was():
    restarted = after_silence(
        ORDERS, held_bytes=LIMIT * 9 // 10, limit_bytes=LIMIT, part=64, machine_restarted=True
    )
    assert restarted.orders.largest_part is None
    assert restarted.why == (
        "the machine was restarted since the last run began; it continues from the last state"
    )


LONG_AGO, AT_ANY_TIME = 0.0, st.floats(0.0, 1e10)


def test_a_machine_that_started_after_a_run_began_was_restarted():
    assert restarted_since("another boot", LONG_AGO)


def test_a_run_that_began_on_another_machine_says_nothing_of_this_one():
    assert not restarted_since("another boot", time.time())


@given(AT_ANY_TIME)
def test_a_machine_was_not_restarted_since_the_same_boot_or_one_that_nobody_wrote_down(seconds):
    assert not restarted_since(boot(), seconds)
    assert not restarted_since("", seconds)


@pytest.mark.parametrize(
    ("boot_then", "told", "part"),
    [
        ("another boot", "the machine was restarted", None),
        (boot(), "probably killed for memory", 32),
    ],
)
def test_a_full_run_without_a_word_is_told_by_the_boot_it_began_in(boot_then, told, part, tmp_path):
    notes = []
    Heartbeat(tmp_path).beat(Pulse(part=64, held_bytes=LIMIT * 9 // 10))
    began = {"event": "began", "orders": asdict(ORDERS), "boot": boot_then, "time": LONG_AGO}
    task = Task("train.py", (), tmp_path, LIMIT, LIMIT)
    orders = _first_orders(task, [began], SimpleNamespace(note=notes.append))
    assert orders.largest_part == part
    assert told in notes[0]


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 10**7), st.integers(0, 10**9), st.integers(8, 100), st.randoms(use_true_random=False))
def test_a_steady_rise_is_a_leak_and_its_slope_is_found(slope, base, steps, random):
    noise = slope * steps // 20
    points = [(step, base + slope * step + random.randint(0, noise)) for step in range(3 * steps)]
    found = growth_of(points, limit_bytes=base + 3 * slope * steps)
    if slope * 2 * steps > 0.15 * (base + 3 * slope * steps):
        assert 0.8 * slope < found.bytes_per_step < 1.2 * slope


@given(st.lists(st.integers(900, 1000), min_size=2, max_size=300))
def test_memory_that_only_trembles_is_no_leak(levels):
    assert growth_of(list(enumerate(levels)), limit_bytes=1100) is None


@given(st.integers(0, 99), st.integers(1, 10**6))
def test_one_jump_is_no_leak(at, height):
    points = [(step, 1000 + height * (step >= at)) for step in range(100)]
    assert growth_of(points, limit_bytes=1000 + height) is None


@pytest.mark.parametrize(("last", "same"), [("began", True), ("ended", False), ("ended, and goes on", True)])
def test_a_run_is_the_same_until_it_has_come_to_an_end(last, same, tmp_path):
    orders = asdict(replace(ORDERS, run="first"))
    entries = [{"event": "began", "orders": orders, "boot": boot(), "time": LONG_AGO}]
    if last != "began":
        entries.append({"event": "ended", "then": orders if "goes on" in last else None})
    task = Task("train.py", (), tmp_path, LIMIT, LIMIT)
    found = _first_orders(task, entries, SimpleNamespace(note=lambda _: None))
    assert (found.run == "first") is same
    assert found.run
