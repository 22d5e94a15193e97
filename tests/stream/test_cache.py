# ruff: noqa: E501, PT012, PTH123, RUF043
"""Caches: the same records, decoded once, in every order, in memory and on disk, across runs and crashes."""

import functools
import json
import logging
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import anybatch as ab
from anybatch.stream.cache_folder import NoRoomOnDisk
from anybatch.stream.hashes import Hasher, Unstable
from anybatch.stream.layout import CannotStore
from tests.shard_files import flipped
from tests.stream import pipelines
from tests.stream.stream_laws import (
    check_nothing_is_lost_or_repeated,
    check_restores_before_every_element,
    check_threads_and_chunks_change_nothing,
    check_workers_see_what_one_sees,
    elements,
    law,
    numbers,
    opened,
)

KINDS = {
    "dense": ab.Numbers("float32", (3,)),
    "scalar": ab.Numbers("int64"),
    "flag": ab.Numbers("bool"),
    "raw": ab.Raw("uint16", (2, 2)),
    "bytes": ab.Bytes(),
    "pair": ab.Bytes(shape=(2,)),
    "lists": ab.Ragged("int64"),
    "words": ab.Ragged(bytes),
}


SCRATCH = Path("/dev/shm" if Path("/dev/shm").is_dir() else "/tmp") / f"anybatch-test-cache-{os.getpid()}"


@pytest.fixture
def tmp_path():
    """A folder in memory: every cache is synced to the disk, which would take longer than all the rest."""
    folder = SCRATCH / os.urandom(6).hex()
    folder.mkdir(parents=True)
    return folder


@pytest.fixture(autouse=True)
def own_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))


def record_of_all_kinds(number):
    return {
        "dense": np.array([number, 0.5, -number], np.float32),
        "scalar": number,
        "flag": number % 2 == 0,
        "raw": np.arange(number, number + 4, dtype="<u2").tobytes(),
        "bytes": b"%d" % number * (number % 4),
        "pair": [b"\0" * (number % 3), b"p%d" % number],
        "lists": list(range(number % 5)),
        "words": [b"w" * at for at in range(number % 4)],
    }


@pytest.fixture
def of_all_kinds(tmp_path):
    ab.write(tmp_path / "kinds.tfrecord", map(record_of_all_kinds, range(57)), shards=3)
    return ab.read(str(tmp_path / "kinds-*"), KINDS)


def places(tmp_path):
    """Where a cache may lie: in memory, and on disk."""
    return [None, tmp_path / "cache"]


# --- the same records in the same order


def test_every_kind_of_column_comes_back_as_it_was(of_all_kinds, tmp_path):
    for make in (
        lambda stream: stream,
        lambda stream: stream.shuffle(seed=3).batch(8),
        lambda stream: stream.map(lambda record: {**record, "dense": record["dense"] * 2}).batch(5),
    ):
        plainly = make(of_all_kinds)
        for place in places(tmp_path):
            kept = make(of_all_kinds.cache(place))
            for epoch in (0, 1, 1, 2):
                assert elements(kept.epoch(epoch)) == elements(plainly.epoch(epoch))


def test_lists_in_lists_come_back_as_they_were(tmp_path):
    def nested(record):
        return {"n": record["n"], "r": [record["r"], record["r"][:1]]}

    stream = pipelines.from_files().batch(4)
    kept = stream.map(nested_lists).cache(tmp_path / "cache")
    assert elements(kept) == elements(kept) == elements(stream.map(nested_lists))


def nested_lists(batch):
    steps = ab.records.RaggedColumn(batch["r"], np.arange(len(batch["r"]) + 1))
    return {"n": batch["n"], "steps": steps}


_IN_PLACE = ["map", "columns", "random", "filter", "take", "skip", "shard", "prefetch"]


@st.composite
def contents(draw):
    """Anything whose order does not depend on the epoch."""
    stream = draw(pipelines.sources())
    for change in draw(st.lists(st.sampled_from(pipelines.CHANGES[:7]), max_size=3)):
        stream = change(draw, stream)
    return stream


@st.composite
def orders(draw):
    """Changes of order as a function of a stream."""
    names = draw(st.lists(st.sampled_from(["shuffle", "window", "take", "skip", "shard"]), max_size=3))
    how = [(name, draw(st.integers(0, 20)), draw(st.integers(1, 3))) for name in names]

    def reorder(stream):
        for name, number, count in how:
            match name:
                case "shuffle":
                    stream = stream.shuffle(seed=number)
                case "window":
                    stream = stream.shuffle(seed=number, window=200)
                case "take":
                    stream = stream.take(number)
                case "skip":
                    stream = stream.skip(number // 4)
                case "shard":
                    stream = stream.shard(count, number % count)
        return stream

    return reorder


on_disk = st.booleans()


def somewhere(disk):
    return SCRATCH / os.urandom(6).hex() if disk else None


@pytest.fixture(scope="module", autouse=True)
def scratch():
    yield
    shutil.rmtree(SCRATCH, ignore_errors=True)


@law(contents(), on_disk, examples=40, soak=1500)
def test_a_cache_gives_what_is_below_it_every_time(stream, disk):
    kept = stream.cache(somewhere(disk))
    expected = elements(stream)
    for epoch in (0, 1, 2):
        # what is random below a cache happened once
        assert elements(kept.epoch(epoch)) == expected


@law(st.booleans(), orders(), orders(), on_disk, examples=60, soak=2000)
def test_order_means_the_same_below_and_above_a_cache(files, below, above, disk):
    source = pipelines.from_files() if files else pipelines.from_memory(13)
    stream = below(source.map(pipelines.doubled))
    expected = above(stream)
    kept = above(stream.cache(somewhere(disk)))
    for epoch in (0, 1, 0, 2):
        assert elements(kept.epoch(epoch)) == elements(expected.epoch(epoch))


@law(orders(), on_disk, examples=25, soak=500)
def test_what_a_filter_kept_is_shuffled_exactly(above, disk):
    of_kept = [number for number in range(14) if number % 3]
    dense = ab.from_arrays({"n": np.array(of_kept)})
    kept = pipelines.from_files().filter(pipelines.not_a_third).cache(somewhere(disk))
    for epoch in (0, 1):
        assert numbers(above(kept).epoch(epoch)) == numbers(above(dense).epoch(epoch))


def test_every_epoch_is_shuffled_anew(of_all_kinds, tmp_path):
    for stream in (of_all_kinds.shuffle(seed=1).cache(), of_all_kinds.cache(tmp_path).shuffle(seed=1)):
        seen = [[int(one["scalar"]) for one in stream.epoch(epoch)] for epoch in range(5)]
        assert all(sorted(one) == list(range(57)) for one in seen)
        assert len({tuple(one) for one in seen}) == 5


def test_a_function_is_called_once_per_record(tmp_path):
    for place in places(tmp_path):
        calls = []

        def counted(record, calls=calls):
            calls.append(int(record["n"]))
            return record

        stream = pipelines.from_files().map(counted).cache(place).shuffle(seed=2).batch(3)
        for epoch in range(3):
            list(stream.epoch(epoch))
        assert sorted(calls) == list(range(pipelines.IN_FILES))


def test_streams_on_one_cache_share_it():
    calls = []
    kept = pipelines.from_memory(20).map(lambda record: calls.append(1) or record).cache()
    assert sorted(numbers(kept.skip(5).shuffle(seed=1)) + numbers(kept.take(5))) == list(range(20))
    assert len(calls) == 20


def test_looking_at_the_first_records_does_not_fill_a_cache():
    calls = []
    stream = pipelines.from_memory(9000).map(lambda record: calls.append(1) or record)
    for kept in (
        stream.cache().take(3),
        stream.cache().batch(3).take(1),
        stream.filter(bool).cache().take(3),
    ):
        calls.clear()
        assert numbers(kept) == [0, 1, 2]
        assert len(calls) < 9000


def test_a_cache_is_full_before_anybody_asks_for_one_more():
    calls = []
    kept = pipelines.from_memory(20).map(lambda record: calls.append(1) or record).cache().shuffle().batch(5)
    list(islice(iter(kept), 4))
    list(kept)
    assert len(calls) == 20


def test_batches_are_kept_as_they_are(tmp_path):
    def summed(batch):
        return {"sum": batch["x"].sum(axis=1), "n": batch["n"]}

    for place in places(tmp_path):
        stream = pipelines.from_files().batch(4).map(summed)
        kept = stream.cache(place)
        assert elements(kept) == elements(kept) == elements(stream)
        assert elements(kept.take(2)) == elements(stream)[:2]
        assert sorted(elements(kept.shuffle(seed=1)), key=str) == sorted(elements(stream), key=str)
        check_restores_before_every_element(kept.shuffle(seed=1))


def test_records_of_one_length_by_chance_are_lists_when_others_differ(tmp_path):
    lengths = [2] * 300 + [3, 1, 0]
    stream = ab.from_arrays(np.array(lengths)).map(lambda n: {"list": np.arange(n)})
    for place in places(tmp_path):
        kept = stream.cache(place)
        for _ in range(2):
            assert [one["list"].tolist() for one in kept] == [list(range(n)) for n in lengths]


def test_a_cache_on_a_cache_holds_what_came_out_of_the_first(tmp_path):
    stream = pipelines.from_files()
    kept = stream.shuffle(seed=1).cache().map(pipelines.doubled).cache(tmp_path).batch(3)
    for epoch in (0, 1, 2):
        expected = stream.map(pipelines.doubled).shuffle(seed=1).batch(3).epoch(epoch)
        assert elements(kept.epoch(epoch)) == elements(expected)


# --- batches of one's own


def test_batches_are_aligned_and_belong_to_the_consumer(of_all_kinds, tmp_path):
    for place in places(tmp_path):
        for kept in (of_all_kinds.cache(place).batch(8), of_all_kinds.cache(place).shuffle(seed=1).batch(8)):
            expected = elements(kept)
            for batch in kept:
                for array in (batch["dense"], batch["lists"].values, batch["bytes"].values):
                    assert array.flags.writeable
                    assert not array.size or array.ctypes.data % 64 == 0
                batch["dense"][...] = -1
                batch["lists"].values[...] = -1
            assert elements(kept) == expected


# --- states


@law(contents(), orders(), on_disk, examples=15, soak=300)
def test_a_cached_stream_can_be_left_and_taken_up_anywhere(stream, above, disk):
    check_restores_before_every_element(above(stream.cache(somewhere(disk))).batch(3))


@law(contents(), orders(), on_disk, examples=15, soak=300)
def test_states_fit_whether_the_cache_is_full_or_not(stream, above, disk):
    def described():
        return above(stream.cache(somewhere(disk))).batch(2)

    filling, full = described(), described()
    elements(full)
    states, whole = [], elements(filling)
    for one in (opened(described()), opened(full)):
        taken = []
        for _ in whole:
            taken.append(one.get_state())
            next(one)
        states.append(taken)
    assert states[0] == states[1]
    for at in range(0, len(whole), 2):
        for again in (opened(described()), opened(full)):
            again.set_state(states[0][at])
            assert elements(again) == whole[at:]


@law(orders(), on_disk, examples=15, soak=300)
def test_threads_and_chunks_change_nothing_about_a_cache(above, disk):
    check_threads_and_chunks_change_nothing(above(pipelines.from_files().cache(somewhere(disk))))


def test_workers_share_what_is_kept():
    for stream in (
        pipelines.from_files().cache().shuffle(seed=4),
        pipelines.from_files().shuffle(seed=4).cache(),
    ):
        check_workers_see_what_one_sees(stream, 3)


def test_the_number_of_workers_can_change_wherever_the_cache_holds_everything():
    stream = pipelines.from_files()
    for worker in (
        lambda count, index: stream.cache().shuffle(seed=4).shard(count, index),
        lambda count, index: stream.shuffle(seed=4).shard(count, index).cache(),
    ):
        check_nothing_is_lost_or_repeated(worker, [[2, 3], [1, 0, 2]], 2)


def test_the_number_of_workers_cannot_change_where_each_keeps_its_own_part():
    def worker(count, index):
        return pipelines.from_files().shard(count, index).cache()

    states = []
    for index in range(2):
        iterator = iter(worker(2, index))
        next(iterator)
        states.append(iterator.get_state())
    again = iter(worker(3, 0))
    with pytest.raises(ValueError, match="put shard behind cache|put it before|another stream"):
        again.set_state(states)
        next(again)


def test_damaged_records_are_left_out_in_the_same_places(tmp_path):
    path = tmp_path / "damaged.tfrecord"
    ab.write(path, map(pipelines.record_of, range(40)))
    content = path.read_bytes()
    for where in (100, 1500, len(content) - 20):
        content = flipped(content, where)
    path.write_bytes(content)

    def stream():
        return ab.read(path, pipelines.FEATURES, on_corrupt="skip")

    expected, damages = [elements(stream().shuffle(seed=5).batch(4).epoch(e)) for e in range(3)], stream()
    list(damages)
    for place in places(tmp_path):
        kept = stream().cache(place).shuffle(seed=5).batch(4)
        assert [elements(kept.epoch(epoch)) for epoch in (0, 1, 2)] == expected
        assert sorted(kept.corrupt) == sorted(damages.corrupt)
        check_restores_before_every_element(kept)
        later = stream().cache(place).shuffle(seed=5).batch(4)
        assert elements(later.epoch(1)) == expected[1]
        assert sorted(later.corrupt) == sorted(damages.corrupt)
        in_order = stream().cache(place and tmp_path / "in order").batch(4)
        assert elements(in_order) == elements(in_order) == elements(stream().batch(4))


# --- what cannot be kept


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda s: s.shuffle().batch(4).cache(), "put cache before batch"),
        (lambda s: s.shuffle().batch(4).map(dict).cache(), "put cache before batch"),
        (lambda s: s.repeat(2).cache(), "before repeat"),
        (lambda s: s.repeat().take(4).cache(), "before repeat"),
        (lambda s: ab.mix([s, s]).cache(), "each of the streams"),
        (lambda s: ab.concat([s.shuffle(), s]).cache(), "each of the streams"),
        (lambda s: s.shuffle().take(5).filter(bool).cache(), "before the shuffle"),
    ],
)
def test_what_a_cache_cannot_hold_is_refused_when_it_is_described(make, says):
    with pytest.raises(ValueError, match=says):
        make(pipelines.from_memory(10))


def test_columns_that_have_no_bytes_are_refused_by_name():
    stream = pipelines.from_memory(3).map(lambda record: {"thing": np.array([object()])})
    with pytest.raises(CannotStore, match="`thing`.*object"):
        list(stream.cache())


def test_batches_of_different_shapes_are_refused():
    stream = pipelines.from_files().batch(3).map(lambda batch: {"r": batch["r"].to_padded()})
    with pytest.raises(CannotStore, match=r"`r`.*shape"):
        list(stream.cache())


# --- memory and disk


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


# --- whole or not at all


def folders_in(root):
    """Every attempt that a cache's folder holds, whole or not."""
    return sorted(str(path) for path in Path(root).glob("*/*/") if path.is_dir())


def generation_in(root):
    """Which attempt the only cache in a folder is made of."""
    (manifest,) = Path(root).glob("*/manifest.json")
    content = json.loads(manifest.read_bytes().partition(b"\n")[2])
    assert [str(manifest.parent / content["generation"])] == folders_in(root)
    return content["generation"]


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


# --- used again, or made anew


SCRIPT = """
    import numpy as np, anybatch as ab
    FACTOR = 2
    TABLE = {"a": [1, 2], "b": (3.5, None)}
    class Scale:
        by = 3
        def __init__(self, extra): self.extra = extra
        def __call__(self, value): return value * self.by + self.extra
    def helper(value):
        return value + 1
    def make(closed_over, default=7):
        scale = Scale(4)
        def function(record, own=default):
            return {"n": helper(record["n"]) * FACTOR + closed_over + own + len(TABLE) + scale(0) + np.abs(-1)}
        return function
    stream = ab.from_arrays({"n": np.arange(50)}).map(make(5)).cache("cache").shuffle(seed=1)
    print(sum(int(record["n"]) for record in stream))
    """


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        ("value + 1", "value + 2", False),
        ("FACTOR = 2", "FACTOR = 3", False),
        ("make(5)", "make(6)", False),
        ("default=7", "default=8", False),
        ("[1, 2]", "[1, 3]", False),
        ("by = 3", "by = 4", False),
        ("self.by + self.extra", "self.by - self.extra", False),
        ("Scale(4)", "Scale(5)", False),
        ("np.abs(-1)", "np.sign(-1)", False),
        ("np.arange(50)", "np.arange(1, 51)", False),
        ('{"n": helper', '{"m": helper', False),
        ("print(", "# a comment, and more lines\n    print(", True),
        ("def helper(value):", "\n\n    def helper(value):", True),
        ("seed=1", "seed=2", True),
        (".shuffle(seed=1)", ".take(30).shuffle(seed=1)", True),
        ("import numpy as np,", "import os, numpy as np,", True),
    ],
)
def test_a_cache_is_used_again_when_nothing_that_makes_it_has_changed(tmp_path, old, new, again):
    run_script(tmp_path, SCRIPT)
    before = generation_in(tmp_path / "cache")
    assert old in SCRIPT
    changed = SCRIPT.replace(old, new).replace('record["n"]) for', "list(record.values())[0]) for")
    run_script(tmp_path, changed)
    assert (generation_in(tmp_path / "cache") == before) == again


def test_a_changed_shard_makes_a_cache_anew(tmp_path):
    path = tmp_path / "a.tfrecord"
    ab.write(path, map(pipelines.record_of, range(10)))

    def kept():
        return ab.read(path, pipelines.FEATURES).cache(tmp_path / "cache")

    list(kept())
    before = generation_in(tmp_path / "cache")
    list(kept())
    assert generation_in(tmp_path / "cache") == before
    os.utime(path, ns=(1, 1))
    list(kept())
    after = generation_in(tmp_path / "cache")
    assert after != before
    ab.write(path, map(pipelines.record_of, range(20, 30)), overwrite=True)
    assert numbers(kept()) == list(range(20, 30))
    assert generation_in(tmp_path / "cache") != after


def test_other_features_of_the_same_files_are_another_cache(tmp_path):
    for names in (["n"], ["n", "x"]):
        features = {name: pipelines.FEATURES[name] for name in names}
        for _ in range(2):
            assert list(next(iter(ab.read(pipelines.shards(), features).cache(tmp_path)))) == names


def test_limits_and_prefetching_do_not_make_a_cache_anew(tmp_path):
    list(pipelines.from_files().cache(tmp_path))
    before = generation_in(tmp_path)
    other = pipelines.from_files().prefetch(3).limit_memory("100MiB")
    list(other.cache(tmp_path))
    names = {path.parent.name for path in tmp_path.glob("*/manifest.json")}
    assert before in [path.name for path in tmp_path.glob("*/*")]
    assert len(names) == 2  # another folder by its name, but the same fingerprint
    fingerprints = {
        json.loads(p.read_bytes().partition(b"\n")[2])["fingerprint"] for p in tmp_path.glob("*/*.json")
    }
    assert len(fingerprints) == 1


def test_what_cannot_be_told_apart_is_not_used_again_and_that_is_said(tmp_path, caplog):
    rng = np.random.default_rng(0)

    def kept():
        return ab.from_arrays(np.arange(50)).map(lambda n: n + rng.integers(2)).cache(tmp_path / "cache")

    with caplog.at_level(logging.WARNING, "anybatch"):
        stream = kept()
        assert elements(stream) == elements(stream)
    assert "`rng`" in caplog.text
    assert "numpy.random" in caplog.text
    assert folders_in(tmp_path / "cache") == []


def test_inputs_that_change_while_a_cache_is_filled_are_noticed(tmp_path):
    path = tmp_path / "a.tfrecord"
    ab.write(path, map(pipelines.record_of, range(10)))
    iterator = iter(ab.read(path, pipelines.FEATURES).cache(tmp_path / "cache"))
    next(iterator)
    os.utime(path, ns=(1, 1))
    list(iterator)
    assert folders_in(tmp_path / "cache") == []


def digest(value: Any) -> bytes:
    return Hasher().digest(value)


def test_equal_values_have_equal_hashes_and_others_have_not():
    values = [
        0, 0.0, -0.0, False, None, "0", b"0", (), [], {}, set(), (0,), [0], {0}, frozenset({1}), {"a": 1}, {"a": 2},
        {"a": 1, "b": 2}, {"b": 2, "a": 1}, np.zeros(2), np.zeros(3), np.zeros(2, "f4"), np.zeros((1, 2)),
        np.float32(0), np.dtype("f4"), range(3), slice(3), 1j, ("ab", "c"), ("a", "bc"), len, str.upper, "x".join,
        "y".join, np.abs, functools.partial(int, base=2), functools.partial(int, base=3), Path("a"), float("nan"),
        lambda: 1, lambda: 2, lambda x=1: x, lambda x=2: x, ab.Numbers("float32"), ab.Numbers("float32", (2,)),
    ]  # fmt: skip
    digests = [digest(value) for value in values]
    assert len(set(digests)) == len(values)
    assert [digest(value) for value in values] == digests


def test_a_function_keeps_its_hash_when_it_is_called():
    def function(values):
        return sum(value * 2 for value in values if isinstance(value, int))

    before = digest(function)
    for _ in range(2000):
        function([1, 2, 3])
    assert digest(function) == before


def test_functions_that_hold_themselves_have_a_hash():
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    held: list[Any] = []
    held.append(held)
    assert digest(even) == digest(even)
    assert digest(even) != digest(odd)
    assert digest(held) == digest(held)


def test_decorated_functions_are_looked_into():
    def decorated(inner):
        @functools.wraps(inner)
        def outer(*args):
            return inner(*args)

        return functools.lru_cache(outer)

    assert digest(decorated(lambda x: x + 1)) != digest(decorated(lambda x: x + 2))


@pytest.mark.parametrize("value", [np.random.default_rng(0), open(os.devnull), (n for n in ())])  # noqa: SIM115
def test_what_has_a_state_of_its_own_has_no_hash(value):
    with pytest.raises(Unstable, match=type(value).__qualname__):
        digest(lambda: value)


def script_in(folder, text):
    path = Path(folder) / "script.py"
    path.write_text(textwrap.dedent(text))
    return path


def run_script(folder, text):
    done = subprocess.run(
        [sys.executable, script_in(folder, text)],
        cwd=folder,
        text=True,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
