"""What a worker's supervisor makes of its end."""

import json
import signal

import pytest

from anybatch.cli.launched import _judged
from anybatch.handover import Journal, Orders, Pulse
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
