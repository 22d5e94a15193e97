"""A worker that writes its state is waited for, however long that takes; one that does nothing is not."""

import signal
import time

import pytest

from anybatch.cli import launched
from anybatch.handover import FOLDER_VARIABLE, Orders
from anybatch.scale import launch
from anybatch.scale.launch import Launch, Signals
from anybatch.scale.launch_outcome import Outcome
from anybatch.scale.launch_patience import (
    FLUSH_SECONDS,
    GRACE_SECONDS,
    Written,
    prolonged,
    written_in,
)
from anybatch.supervise.attempt import PATIENCE_SECONDS
from anybatch.train.checkpoint import Checkpoint
from anybatch.train.checkpoint_folders import opened
from anybatch.train.workers import PEER_VARIABLE, told_state_folder

NAMED = Written((("state-000001.json", 90, 1),))
HALF = Written((*NAMED.files, (".state-000002.safetensors.7.aa.tmp", 1 << 20, 2)))
MORE = Written((*NAMED.files, (".state-000002.safetensors.7.aa.tmp", 2 << 20, 3)))
WHOLE = Written((*NAMED.files, ("state-000002.safetensors", 2 << 20, 3)))


@pytest.mark.parametrize(
    ("before", "seen", "deadline"),
    [
        (NAMED, NAMED, 105.0),
        (NAMED, HALF, 100.0 + FLUSH_SECONDS),
        (HALF, MORE, 100.0 + FLUSH_SECONDS),
        (MORE, MORE, 105.0),
        (MORE, WHOLE, 100.0 + GRACE_SECONDS),
    ],
    ids=["nothing happens", "it begins", "it goes on", "it stands still", "it is whole"],
)
def test_what_changes_prolongs_and_what_stands_still_does_not(before, seen, deadline):
    assert prolonged(105.0, now=100.0, before=before, seen=seen) == deadline


def test_a_file_that_grows_is_another_sight(tmp_path):
    (tmp_path / "fit-1").mkdir()
    file = tmp_path / "fit-1" / ".state-000001.safetensors.7.aa.tmp"
    file.write_bytes(b"1")
    before = written_in(tmp_path)
    file.write_bytes(b"12")
    assert before.half
    assert written_in(tmp_path) != before
    assert written_in(None) == written_in(tmp_path / "absent") == Written()


def test_a_worker_says_where_its_script_keeps_the_state(tmp_path, monkeypatch):
    papers = tmp_path / "papers"
    papers.mkdir()
    assert told_state_folder(papers) is None
    monkeypatch.setenv(FOLDER_VARIABLE, str(papers))
    checkpoint = opened(tmp_path / "chosen", {}, resume=True)
    assert isinstance(checkpoint, Checkpoint)
    checkpoint.close()
    assert told_state_folder(papers) == (tmp_path / "chosen").resolve()


def test_whoever_waits_for_another_worker_is_not_taken_for_one_that_hangs(tmp_path, monkeypatch):
    monkeypatch.setenv(PEER_VARIABLE, "1800")
    task = launched._task(tmp_path, Orders(), "script.py", [])
    assert task.patience_seconds > 1800
    monkeypatch.setenv(PEER_VARIABLE, "5")
    assert launched._task(tmp_path, Orders(), "script.py", []).patience_seconds == PATIENCE_SECONDS


class Dead:
    """A worker that is gone at once."""

    def poll(self):
        return Outcome(1, 137, "somebody killed it", curable=True)


class Writing:
    """Worker 0: it writes for some seconds once it is told to stop, and ends then, unless it is ended."""

    def __init__(self, seconds):
        self._seconds = seconds
        self._stopped = None
        self.signals = []

    def poll(self):
        over = self._stopped is not None and time.monotonic() > self._stopped + self._seconds
        return Outcome(0, 1, "it lost the others", lost=True) if over or self.signals else None

    def written(self):
        return Written(((".state.tmp", time.monotonic_ns(), 0),))

    def stop(self):
        self._stopped = time.monotonic()

    def signal(self, number):
        self.signals.append(number)


class Hanging(Writing):
    """Worker 0, which never ends and writes nothing."""

    def __init__(self):
        super().__init__(seconds=1e9)

    def written(self):
        return Written()


class Places:
    def __init__(self, first):
        self._first = first

    def addresses(self, count):
        return ["a:1", "b:1"][:count]

    def start(self, assignment, say):
        return Dead() if assignment.rank else self._first


def silent_after(first, tmp_path):
    settings = Launch("train.py", (), 2, tmp_path, ())
    signals = Signals(taken=list, wait=lambda _: time.sleep(0.01))
    attempt = launch._Attempt(settings, Places(first), [Orders(), Orders()], lambda *_: None, signals)
    return attempt.until_all_ended().silent


def test_worker_0_is_not_ended_while_it_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "GRACE_SECONDS", 0.2)
    first = Writing(seconds=1)
    assert silent_after(first, tmp_path) == set()
    assert first.signals == []


def test_worker_0_is_ended_if_it_does_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "GRACE_SECONDS", 0.2)
    first = Hanging()
    assert silent_after(first, tmp_path) == {0}
    assert first.signals == [signal.SIGTERM]
