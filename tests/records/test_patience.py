"""A first index that takes long says how far it is."""

import logging
import os
import pty
import re

import anybatch as ab
from anybatch.records import patience as told
from tests.shard_files import some_records, write_shard


def counted(folder):
    """Count the records of three shards that nobody has seen before."""
    for shard in range(3):
        write_shard(folder / f"{shard}.tfrecord", some_records(100))
    assert len(ab.read(str(folder / "*.tfrecord"), bytes)) == 300


def on_a_terminal(monkeypatch, act):
    """What a terminal shows while something happens."""
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        act()
        terminal.write("the end")
        terminal.flush()
        shown = ""
        while not shown.endswith("the end"):
            shown += os.read(master, 65536).decode()
    os.close(master)
    return shown


def test_a_terminal_shows_how_far_it_is_and_the_line_vanishes(tmp_path, monkeypatch):
    monkeypatch.setattr(told, "SILENT_SECONDS", 0.0)
    shown = on_a_terminal(monkeypatch, lambda: counted(tmp_path))
    assert re.search(r"indexing 3 new files: .* of 9.23 KiB, \d+%", shown)
    assert shown.endswith("\r\x1b[Kthe end")


def test_what_is_done_at_once_says_nothing(tmp_path, monkeypatch):
    assert on_a_terminal(monkeypatch, lambda: counted(tmp_path)) == "the end"


def test_without_a_terminal_the_log_is_told(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(told, "SILENT_SECONDS", 0.0)
    with caplog.at_level(logging.INFO, logger="anybatch"):
        counted(tmp_path)
    assert any("indexing 3 new files" in line for line in caplog.messages)
