"""What follows when workers end, as a table of cases."""

import pytest

from anybatch.handover import Orders
from anybatch.scale.launch_outcome import Outcome, read_outcome
from anybatch.scale.launch_policy import Again, End, Over, decided

ORDERS = [Orders(attempt=3), Orders(attempt=3), Orders(attempt=3)]


def finished(rank):
    return Outcome(rank, 0, "the script finished")


def lost(rank):
    return Outcome(rank, 1, "it lost the others", lost=True)


def killed(rank, ended=1.0, then=None):
    return Outcome(rank, 137, "somebody killed it", "it continues", curable=True, then=then, ended=ended)


def bug(rank, ended=1.0):
    return Outcome(rank, 1, "the script raised ValueError", "a restart would not cure that", ended=ended)


def after(*outcomes, attempts=1, retries=10, early=0, **more):
    orders = ORDERS[: len(outcomes)]
    return decided(End(outcomes, **more), orders, attempts=attempts, retries=retries, early=early)


def test_all_that_finished_is_the_end():
    assert after(finished(0), finished(1)) == Over(0)


def test_a_killed_worker_is_named_and_all_start_again():
    decision = after(lost(0), killed(1), lost(2))
    assert isinstance(decision, Again)
    assert decision.why == "worker 1: somebody killed it; it continues"
    assert [orders.attempt for orders in decision.orders] == [4, 4, 4]


def test_only_the_worker_that_ran_out_gets_smaller_parts():
    smaller = Orders(attempt=4, largest_part=8)
    decision = after(lost(0), killed(1, then=smaller), lost(2))
    assert [orders.largest_part for orders in decision.orders] == [None, 8, None]


def test_what_a_restart_does_not_cure_ends_all():
    assert after(bug(0), lost(1)) == Over(
        1, "worker 0: the script raised ValueError; a restart would not cure that"
    )


def test_the_first_to_end_decides():
    assert isinstance(after(killed(0, ended=1.0), bug(1, ended=2.0)), Again)
    assert isinstance(after(killed(0, ended=2.0), bug(1, ended=1.0)), Over)


def test_a_worker_that_finishes_again_before_the_others_ends_all():
    assert isinstance(after(finished(0), lost(1), attempts=2, early=1), Again)
    decision = after(finished(0), lost(1), lost(2), attempts=2, early=2)
    assert decision.code == 1
    assert decision.why == (
        "worker 1: it lost the others; worker 2: it lost the others; "
        "worker 0 had finished by then, again: all workers have to make the same calls of fit"
    )
    assert isinstance(after(finished(0), killed(1), attempts=3, early=2), Again)


def test_restarts_are_counted():
    assert isinstance(after(lost(0), killed(1), attempts=2, retries=2), Again)
    decision = after(lost(0), killed(1), attempts=3, retries=2)
    assert (decision.code, "last of 2 restarts" in decision.why) == (137, True)


def test_a_worker_that_does_not_answer_is_named():
    decision = after(lost(0), killed(1), silent=frozenset({1}))
    assert isinstance(decision, Again)
    assert decision.why.startswith("worker 1 did not answer")


@pytest.mark.parametrize("number", [2, 15])
def test_whoever_is_told_to_end_does_not_start_again(number):
    decision = after(lost(0), killed(1), signal=number)
    assert (decision.code, "the same command continues" in decision.why) == (128 + number, True)


def test_a_worker_of_a_cluster_that_lost_the_others_starts_again():
    assert isinstance(after(lost(0)), Again)


def test_an_outcome_is_read_as_it_was_written(tmp_path):
    outcome = killed(1, then=Orders(attempt=2, largest_part=4))
    assert read_outcome(tmp_path) is None
    outcome.write(tmp_path)
    assert read_outcome(tmp_path) == outcome
