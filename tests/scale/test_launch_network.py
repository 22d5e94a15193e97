"""Workers on two hosts make the updates of one process, whatever the network between them does."""

import random
import time
from contextlib import contextmanager

import pytest

from tests.scale.launched import (
    alone,
    in_namespace,
    largest_difference,
    results,
    start_member,
    updated,
)
from tests.scale.line import CUT, Conditions, address

EXACT = 1e-9
PORT = 23000
SLOW = Conditions(delay_seconds=0.01, jitter_seconds=0.005, loss=0.05)
WORSE = Conditions(delay_seconds=0.05, jitter_seconds=0.02, loss=0.02)


@contextmanager
def workers_across(line, folder, *arguments, options=()):
    """One worker on each of two hosts."""
    addresses = [f"{address(host)}:{PORT}" for host in range(2)]
    workers = [
        start_member(folder, addresses, rank, *arguments, options=options, prefix=in_namespace(host))
        for rank, host in enumerate(line.hosts)
    ]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()


@pytest.mark.long
def test_every_sample_counts_once_where_packets_are_late_and_lost(line, tmp_path):
    line.becomes(SLOW)
    with workers_across(line, tmp_path, tmp_path / "slow.npz", "--kinds", "counts", "--epochs", 1) as workers:
        told = [worker.communicate(timeout=120) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], told
    assert line.dropped > 0
    assert (results(tmp_path / "slow.npz")["counts/0"] == -1).all()


@pytest.mark.soak
@pytest.mark.parametrize("conditions", [SLOW, WORSE], ids=["slow", "worse"])
def test_a_slow_network_that_loses_packets_changes_nothing(line, conditions, tmp_path):
    training = ["--kinds", "table", "sentences", "--epochs", 2]
    assert alone(tmp_path, tmp_path / "one.npz", *training).code == 0
    line.becomes(conditions)
    with workers_across(line, tmp_path, tmp_path / "slow.npz", *training) as workers:
        told = [worker.communicate(timeout=300) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], told
    assert not any("lost the others" in err for _, err in told)
    assert line.dropped > 0
    assert largest_difference(results(tmp_path / "slow.npz"), results(tmp_path / "one.npz")) < EXACT


def unplug(line):
    """Take the device of one host down: both kernels know that there is no line."""
    line.plug("down")


def fall_silent(line):
    line.becomes(CUT)


def deafen_first(line):
    line.ways[1].conditions = CUT


def deafen_second(line):
    line.ways[0].conditions = CUT


broken = pytest.mark.parametrize("broken", [unplug, fall_silent, deafen_first, deafen_second])


@pytest.mark.soak
@broken
def test_workers_that_are_cut_off_go_on_when_the_network_is_back(line, broken, tmp_path):
    training = ["--kinds", "table", "--epochs", "4"]
    assert alone(tmp_path, tmp_path / "one.npz", *training).code == 0
    arguments = [tmp_path / "cut.npz", *training, "--slow", "0.5"]
    options = ["--timeout", "5", "--join-timeout", "60"]
    with workers_across(line, tmp_path, *arguments, options=options) as workers:
        for worker in workers:
            updated(worker, 3)
        broken(line)
        time.sleep(15)
        line.becomes(Conditions())
        line.plug("up")
        told = [worker.communicate(timeout=240) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], told
    assert all("lost the others" in err for _, err in told)
    assert largest_difference(results(tmp_path / "cut.npz"), results(tmp_path / "one.npz")) < EXACT


@pytest.mark.soak
def test_cuts_at_random_moments_change_nothing(line, tmp_path):
    """Some shorter and some longer than the workers wait, some in one direction only."""
    training = ["--kinds", "table", "--epochs", "60"]
    assert alone(tmp_path, tmp_path / "one.npz", *training).code == 0
    arguments = [tmp_path / "cut.npz", *training, "--slow", "0.4"]
    options = ["--timeout", "5", "--join-timeout", "60"]
    draw = random.Random(1)
    with workers_across(line, tmp_path, *arguments, options=options) as workers:
        for _ in range(6):
            time.sleep(draw.uniform(8, 22))
            assert [worker.poll() for worker in workers] == [None, None]
            draw.choice([fall_silent, deafen_first, deafen_second])(line)
            time.sleep(draw.uniform(0.5, 9))
            line.becomes(Conditions())
        told = [worker.communicate(timeout=300) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], told
    assert all("lost the others" in err for _, err in told)
    assert largest_difference(results(tmp_path / "cut.npz"), results(tmp_path / "one.npz")) < EXACT


@pytest.mark.soak
@broken
def test_workers_that_stay_cut_off_end_in_the_time_that_was_allowed(line, broken, tmp_path):
    """Each misses the other in an update, starts again, and waits for it to come."""
    arguments = [tmp_path / "cut.npz", "--kinds", "table", "--epochs", "4", "--slow", "0.5"]
    options = ["--timeout", "5", "--join-timeout", "10"]
    with workers_across(line, tmp_path, *arguments, options=options) as workers:
        for worker in workers:
            updated(worker, 3)
        broken(line)
        began = time.monotonic()
        told = [worker.communicate(timeout=120) for worker in workers]
        took_seconds = time.monotonic() - began
    assert [worker.returncode for worker in workers] == [1, 1], told
    for rank, (_, err) in enumerate(told):
        assert f"worker {1 - rank} at {address(1 - rank)}:{PORT} did not come in 10 s" in err
    # both waits; TensorFlow is imported in between, which took 10 s on two cores
    assert took_seconds < 5 + 10 + 45
