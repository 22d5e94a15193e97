"""What a worker's supervisor makes of its end."""

import json
import signal

import pytest

from anybatch.cli.launched import _judged, _kept_within, _task
from anybatch.handover import Journal, Orders, Pulse
from anybatch.memory import allowance
from anybatch.supervise.attempt import Life
from anybatch.supervise.verdict import Evidence

ABORTED = Life(Evidence(signal=signal.SIGABRT, limit_bytes=1 << 30), [], Pulse(step=5), first_step=0)


def outcome_among(workers, folder, monkeypatch):
    addresses = [f"a:{port}" for port in range(workers)]
    config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    return _judged(0, Orders(), ABORTED, Journal(folder))


@pytest.mark.parametrize(("workers", "curable"), [(1, False), (2, True)])
def test_a_crash_is_curable_among_several(workers, curable, tmp_path, monkeypatch):
    outcome = outcome_among(workers, tmp_path, monkeypatch)
    assert outcome.curable is curable
    assert outcome.code == 128 + signal.SIGABRT
    assert not outcome.lost


def test_crashes_without_a_new_step_are_given_up(tmp_path, monkeypatch):
    outcomes = [outcome_among(2, tmp_path, monkeypatch) for _ in range(4)]
    assert [one.curable for one in outcomes] == [True, True, True, False]
    assert "before a new step" in outcomes[-1].why


@pytest.mark.parametrize("limit_bytes", [None, 1 << 60])
def test_neither_a_worker_nor_its_group_may_have_more_than_the_machine_allows(limit_bytes, tmp_path):
    orders = Orders(limit_bytes=limit_bytes)
    task = _task(tmp_path, orders, "train.py", [])
    assert task.limit_bytes <= task.group_limit_bytes <= allowance().whole_bytes
    assert (_kept_within(task, orders).limit_bytes or 0) <= task.limit_bytes


def test_a_worker_that_may_have_less_than_the_machine_allows_is_told_so(tmp_path):
    orders = Orders(limit_bytes=100 << 20)
    task = _task(tmp_path, orders, "train.py", [])
    assert task.limit_bytes == _kept_within(task, orders).limit_bytes == 100 << 20
    assert task.group_limit_bytes == 108 << 20
