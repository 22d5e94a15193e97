import errno
import json
import os
import subprocess
import sys
from dataclasses import asdict, replace

import pytest

from anybatch.handover import (
    FOLDER_VARIABLE,
    OWNER_VARIABLE,
    Disk,
    Heartbeat,
    Journal,
    Orders,
    Pulse,
    last_words_of,
    place,
    read_last_words,
    read_orders,
    read_pulse,
    received_orders,
    reserve_last_words,
    sealed,
    unsealed,
)

ORDERS = Orders(3, "/a/state", 2 << 30, 64, 2, 1 << 20)


class FailingAt(Disk):
    """A disk whose operation number `at` fails, before it has done anything."""

    def __init__(self, at):
        self.at = at
        self.done = 0

    def _count(self):
        self.done += 1
        if self.done == self.at:
            raise OSError(errno.EIO, "the disk failed")

    def create(self, file):
        self._count()
        return super().create(file)

    def write(self, handle, content):
        self._count()
        super().write(handle, content)

    def sync(self, handle):
        self._count()
        super().sync(handle)

    def rename(self, old, new):
        self._count()
        super().rename(old, new)

    def sync_folder(self, folder):
        self._count()
        super().sync_folder(folder)


def test_orders_arrive_as_they_were_given(tmp_path, monkeypatch):
    ORDERS.write(tmp_path)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert received_orders() == read_orders(tmp_path) == ORDERS


def test_without_a_supervisor_there_are_no_orders_and_nobody_listens(monkeypatch):
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    assert received_orders() is None
    assert not Heartbeat.of_this_process().heard
    assert not Heartbeat.of_this_process().due()


def test_what_a_supervised_script_starts_has_its_limits_and_not_its_state(tmp_path, monkeypatch):
    ORDERS.write(tmp_path)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setenv(OWNER_VARIABLE, str(os.getpid()))
    assert received_orders() == ORDERS
    assert Heartbeat.of_this_process().heard
    monkeypatch.setenv(OWNER_VARIABLE, str(os.getppid()))
    assert received_orders() == replace(ORDERS, state_folder=None)
    assert not Heartbeat.of_this_process().heard


def test_orders_of_a_newer_version_are_understood_as_far_as_they_are_known(tmp_path):
    (tmp_path / "orders.json").write_bytes(sealed(asdict(ORDERS) | {"mood": "calm"}))
    assert read_orders(tmp_path) == ORDERS


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"7", b"null", b"\xff\xfe", b"[" * 100_000, b'{"sum": 1}']
)
def test_what_is_no_document_reads_as_absent(tmp_path, content):
    assert unsealed(content) is None
    for name in ("orders", "heartbeat", "last-words"):
        (tmp_path / f"{name}.json").write_bytes(content)
    (tmp_path / "journal.jsonl").write_bytes(content)
    assert (read_orders(tmp_path), read_pulse(tmp_path), read_last_words(tmp_path)) == (None, None, None)
    assert Journal(tmp_path).entries() == []


def test_a_flipped_bit_anywhere_is_noticed_or_changes_nothing(tmp_path):
    whole = sealed({"step": 12, "name": "a", "list": [1.5, None]})
    for at in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << bit
            assert unsealed(bytes(damaged)) in (None, unsealed(whole))


@pytest.mark.parametrize("at", range(1, 7))
def test_a_disk_that_fails_leaves_the_old_file_or_the_new_one_and_nothing_else(tmp_path, at):
    file = tmp_path / "state.json"
    place(file, [b"old"])
    disk = FailingAt(at)
    try:
        place(file, [b"ne", b"w"], disk=disk)
    except OSError:
        assert file.read_bytes() == (b"new" if at == 6 else b"old")
    else:
        raise AssertionError("the failure was hidden")
    assert [one.name for one in tmp_path.iterdir()] == ["state.json"]


def test_a_place_takes_six_operations_and_no_more(tmp_path):
    disk = FailingAt(0)
    place(tmp_path / "a", [b"x", b"y"], disk=disk)
    assert disk.done == 6


def test_heartbeats_are_written_at_once_then_seldom(tmp_path):
    heart = Heartbeat(tmp_path)
    heart.beat(Pulse(step=1, part=32))
    heart.beat(Pulse(step=2))
    assert read_pulse(tmp_path) == Pulse(step=1, part=32, beat=1)
    heart.beat(Pulse(step=3, training=False), now=True)
    assert read_pulse(tmp_path) == Pulse(step=3, training=False, beat=2)


def test_a_heartbeat_that_cannot_be_written_disturbs_nobody(tmp_path):
    Heartbeat(tmp_path / "gone").beat(Pulse(step=1))
    assert read_pulse(tmp_path / "gone") is None


def test_last_words_say_what_it_was_and_where(tmp_path):
    reserve_last_words(tmp_path)
    assert read_last_words(tmp_path) is None
    try:
        os.open("/nowhere/at/all", os.O_RDONLY)
    except OSError as error:
        last_words_of(error).write(tmp_path)
    found = read_last_words(tmp_path)
    assert (found.kind, found.errno) == ("FileNotFoundError", errno.ENOENT)
    assert "builtins.OSError" in found.kinds
    assert found.where.startswith(__file__)


def test_an_exception_that_cannot_be_printed_has_last_words_too(tmp_path):
    class Sulking(Exception):
        def __str__(self):
            raise RuntimeError

    reserve_last_words(tmp_path)
    last_words_of(Sulking()).write(tmp_path)
    assert read_last_words(tmp_path).kind == "Sulking"


def test_the_longest_last_words_fit_into_the_room_reserved_for_them(tmp_path):
    reserve_last_words(tmp_path)
    before = (tmp_path / "last-words.json").stat().st_size
    last_words_of(OSError(errno.ENOSPC, "\U0001f4be" * 5000)).write(tmp_path)
    assert read_last_words(tmp_path).errno == errno.ENOSPC
    assert (tmp_path / "last-words.json").stat().st_size == before


def test_a_torn_line_costs_only_itself(tmp_path):
    journal = Journal(tmp_path)
    journal.add({"attempt": 1})
    with (tmp_path / "journal.jsonl").open("ab") as out:
        out.write(sealed({"attempt": 2})[:-9])
    journal.add({"attempt": 3})
    assert [entry["attempt"] for entry in journal.entries()] == [1, 3]


def test_a_writer_killed_at_any_moment_leaves_a_whole_file(tmp_path):
    script = (
        "import sys; from pathlib import Path; from anybatch.handover import write_sealed\n"
        "print(flush=True)\n"
        "for step in range(10**9):\n"
        "    write_sealed(Path(sys.argv[1]), {'step': step, 'filler': 'x' * 5000}, durable=False)"
    )
    file = tmp_path / "document.json"
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-c", script, file], stdout=subprocess.PIPE) as writer:
            writer.stdout.readline()
            while not file.exists():
                assert writer.poll() is None
            writer.kill()
        assert json.loads(file.read_bytes())["content"] == unsealed(file.read_bytes())


def test_the_handover_imports_next_to_nothing():
    script = "import sys, anybatch.handover; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    ).stdout.split()
    assert not {"numpy", "typer", "rich", "anybatch._native", "tensorflow"} & set(loaded)
