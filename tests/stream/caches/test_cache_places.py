# ruff: noqa: E501, RUF043
"""Caches in memory and on disk: as large as allowed, whole or not at all."""

import logging
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest

import anybatch as ab
from anybatch.stream.cache_folder import NoRoomOnDisk
from tests.shard_files import flipped
from tests.stream import pipelines
from tests.stream.caches.kept import folders_in, generation_in, run_script, script_in
from tests.stream.stream_laws import (
    elements,
)


def test_within_the_limit_nothing_is_written(of_all_kinds, tmp_path):
    list(of_all_kinds.cache().shuffle().batch(8))
    assert not (tmp_path / "xdg" / "anybatch" / "columns").exists()


def test_beyond_the_limit_columns_lie_in_the_users_cache_folder_and_are_used_again(tmp_path):
    rows = np.arange(400_000).reshape(4000, 100)
    stream = ab.from_arrays({"n": rows})

    def kept():
        return stream.shuffle(seed=1).cache().batch(100).limit_memory("4MiB")

    first, second = kept(), kept()
    for epoch in (0, 1):
        assert elements(first.epoch(epoch)) == elements(stream.shuffle(seed=1).batch(100).epoch(epoch))
    (folder,) = (tmp_path / "xdg" / "anybatch" / "columns").iterdir()
    before = generation_in(folder.parent)
    assert elements(second.epoch(1)) == elements(first.epoch(1))
    assert generation_in(folder.parent) == before


def test_what_was_kept_in_memory_moves_to_disk_under_a_lower_limit(tmp_path):
    kept = ab.from_arrays(np.arange(400_000).reshape(4000, 100)).cache()
    expected = elements(kept.batch(100))
    assert not (tmp_path / "xdg").exists()
    for _ in range(2):
        assert elements(kept.batch(100).limit_memory("4MiB")) == expected
    assert (tmp_path / "xdg").exists()


def test_sizes_that_show_only_later_go_to_disk_then(tmp_path):
    lengths = np.r_[np.ones(2000, int), np.full(4000, 200)]
    stream = ab.from_arrays(lengths).map(lambda n: {"list": np.arange(n)})
    kept = stream.cache().limit_memory("8MiB")
    for _ in range(2):
        assert [len(one["list"]) for one in kept] == lengths.tolist()
    assert (tmp_path / "xdg").exists()


def test_anonymous_memory_stays_small_while_the_cache_lies_on_disk(tmp_path_factory):
    n_bytes = run_script(
        tmp_path_factory.mktemp("on disk"),
        """
        import os, sys, numpy as np, anybatch as ab
        def anonymous():
            return 1024 * int(open("/proc/self/status").read().split("RssAnon:")[1].split()[0])
        rows = np.random.default_rng(0).integers(0, 255, (25_000, 4096), "u1")
        rows.tofile("rows.bin"); del rows
        rows = np.memmap("rows.bin", "u1", "r", shape=(25_000, 4096))
        stream = ab.from_arrays({"x": rows, "n": np.arange(25_000)}).map(lambda c: {**c, "x": c["x"] ^ 1}, batched=True)
        for batch in stream.take(512).batch(64).limit_memory("24MiB"):
            pass
        kept = stream.cache("cache").shuffle(seed=1).batch(64).limit_memory("24MiB")
        del batch
        idle, most = anonymous(), 0
        for epoch in range(2):
            for batch in kept.epoch(epoch):
                most = max(most, anonymous())
        print(most - idle)
        """,
    )
    assert int(n_bytes) < (24 + 16) << 20


def test_a_disk_without_room_is_named_before_it_is_filled(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100))
    with pytest.raises(NoRoomOnDisk, match="cache.path. names another folder"):
        list(ab.from_arrays(np.arange(1000)).cache(tmp_path / "cache").shuffle())
    assert folders_in(tmp_path / "cache") == []


def test_a_stream_is_pickled_without_what_it_holds():
    kept = pipelines.from_memory(10).cache().shuffle(seed=1)
    list(kept)
    again = pickle.loads(pickle.dumps(kept))
    assert again._stage.parent.held.table is None
    assert elements(again) == elements(kept)


def test_the_length_behind_a_filter_is_known_once_it_is_kept():
    kept = pipelines.from_memory(10).filter(pipelines.not_a_third).cache()
    with pytest.raises(TypeError):
        len(kept)
    list(kept)
    assert len(kept) == 6
    assert len(kept.shuffle().batch(4)) == 2


def test_stats_tell_what_a_cache_holds():
    kept = ab.from_arrays(np.zeros((1000, 10))).cache().batch(10)
    list(kept)
    list(kept)
    held = {one["stage"]: one["held_bytes"] for one in kept.stats()}
    assert held["cache()"] == 80_000


def test_a_pass_that_is_left_leaves_nothing_behind(of_all_kinds, tmp_path):
    for stop in (0, 1, 5):
        iterator = iter(of_all_kinds.shuffle().cache(tmp_path / "cache").batch(8))
        list(islice(iterator, stop))
        iterator.close()
        assert folders_in(tmp_path / "cache") == []
    assert elements(of_all_kinds.cache(tmp_path / "cache")) == elements(of_all_kinds)


def test_a_failing_function_leaves_nothing_behind(tmp_path):
    def failing(record):
        if record["n"] == 9:
            raise RuntimeError("nine")
        return record

    kept = pipelines.from_memory(20).map(failing).cache(tmp_path / "cache")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="nine"):
            list(kept)
        assert folders_in(tmp_path / "cache") == []


@pytest.mark.parametrize("when", [0.0, 0.05, 0.15])
def test_a_killed_filling_is_not_taken_for_a_cache(tmp_path, when):
    script = """
        import time, numpy as np, anybatch as ab
        def slowly(columns):
            time.sleep(0.01)
            return columns
        stream = ab.from_arrays({"n": np.arange(6000)}).map(slowly, batched=True).cache("cache").shuffle(seed=1).batch(100)
        print("begun", flush=True)
        print(sum(int(batch["n"].sum()) for batch in stream))
        """
    path = script_in(tmp_path, script)
    process = subprocess.Popen([sys.executable, path], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    time.sleep(when)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not list((tmp_path / "cache").glob("*/manifest.json"))
    assert run_script(tmp_path, script).split()[1] == str(sum(range(6000)))
    # and what the killed one had written is gone
    assert len(folders_in(tmp_path / "cache")) == 1
    generation_in(tmp_path / "cache")


def test_processes_that_fill_one_cache_do_not_disturb_each_other(tmp_path):
    path = script_in(
        tmp_path,
        """
        import numpy as np, anybatch as ab
        kept = ab.from_arrays({"n": np.arange(20_000)}).shuffle(seed=1).cache("cache").batch(50)
        for epoch in range(3):
            assert sorted(np.concatenate([b["n"] for b in kept.epoch(epoch)]).tolist()) == list(range(20_000))
        """,
    )
    processes = [subprocess.Popen([sys.executable, path], cwd=tmp_path) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    generation_in(tmp_path / "cache")


@pytest.mark.parametrize("damage", ["flip", "cut", "gone", "manifest", "checks"])
def test_a_damaged_cache_is_noticed_and_made_anew(of_all_kinds, tmp_path, damage, caplog):
    root = tmp_path / "cache"
    expected = elements(of_all_kinds.shuffle(seed=1))
    list(of_all_kinds.cache(root).shuffle(seed=1))
    before = generation_in(root)
    files = sorted(root.glob("*/*/*.bin"), key=lambda path: -path.stat().st_size)
    match damage:
        case "flip":
            files[0].write_bytes(flipped(files[0].read_bytes(), files[0].stat().st_size // 2))
        case "cut":
            os.truncate(files[0], files[0].stat().st_size - 1)
        case "gone":
            files[0].unlink()
        case "manifest":
            (manifest,) = root.glob("*/manifest.json")
            manifest.write_bytes(flipped(manifest.read_bytes(), 60))
        case "checks":
            (checks,) = root.glob("*/*/checks.bin")
            checks.write_bytes(flipped(checks.read_bytes(), 1))
    with caplog.at_level(logging.WARNING, "anybatch"):
        assert elements(of_all_kinds.cache(root).shuffle(seed=1)) == expected
    assert generation_in(root) != before
    assert "made anew" in caplog.text
