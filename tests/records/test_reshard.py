import resource
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anybatch.errors import CorruptRecord, NothingToRead, ShardChanged, WillNotOverwrite
from anybatch.records import index_shards, reshard, verify
from anybatch.records.reshard import batch_records, held_bytes, new_names
from anybatch.records.sizes import Sizes
from tests.shard_files import (
    flipped,
    left_behind,
    records_in,
    some_records,
    starts_of,
    stream_of,
    write_shard,
)

RECORDS = some_records(101)
LARGE = [bytes([number]) * 40_000 for number in range(20)]
PACKINGS = pytest.mark.parametrize("packings", [("", ""), ("GZIP", "GZIP"), ("", "ZLIB")], ids=str)


def sources(tmp_path, packings):
    names = [tmp_path / f"old-{number}.tfrecord" for number in range(2)]
    halves = (RECORDS[:70], RECORDS[70:])
    return [write_shard(*given) for given in zip(names, halves, packings, strict=True)]


@PACKINGS
@pytest.mark.parametrize("shards", [1, 2, 7, 30])
def test_in_order_the_records_stay_as_they_were(tmp_path, packings, shards):
    made = reshard(sources(tmp_path, packings), tmp_path / "new", shards)
    assert [len(records_in(file)) for file in made.files] == list(made.records)
    assert max(made.records) - min(made.records) <= 1
    assert records_in(*made.files) == RECORDS


def test_more_shards_than_records_are_partly_empty(tmp_path):
    made = reshard(sources(tmp_path, ("", "")), tmp_path / "new", 105)
    assert made.records == (1,) * 101 + (0,) * 4
    assert [len(records_in(file)) for file in made.files] == list(made.records)


@PACKINGS
def test_shuffled_records_are_a_permutation_that_the_seed_decides(tmp_path, packings):
    files = sources(tmp_path, packings)
    orders = {}
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        made = reshard(files, tmp_path / name, 4, shuffle=True, seed=seed)
        orders[name] = records_in(*made.files)
        assert Counter(orders[name]) == Counter(RECORDS)
        assert max(made.records) - min(made.records) <= 1
    assert orders["a"] == orders["b"] != orders["c"]
    assert RECORDS not in orders.values()


def test_compressed_or_not_the_seed_gives_the_same_order(tmp_path):
    orders = []
    for name, packings in (("plain", ("", "")), ("packed", ("GZIP", "ZLIB"))):
        (tmp_path / name).mkdir()
        made = reshard(sources(tmp_path / name, packings), tmp_path / name / "new", 3, shuffle=True, seed=5)
        orders.append(records_in(*made.files))
    assert orders[0] == orders[1]


@pytest.mark.parametrize("compression", [None, "GZIP", "ZLIB"])
def test_new_shards_are_compressed_as_asked_and_sound(tmp_path, compression):
    made = reshard(sources(tmp_path, ("", "GZIP")), tmp_path / "new", 3, compression=compression)
    overview = verify(made.files)
    assert {shard.compression for shard in overview.shards} == {compression or ""}
    assert (overview.records, overview.damaged) == (101, ())


@pytest.mark.parametrize("shuffle", [False, True])
@PACKINGS
def test_nothing_but_the_new_shards_is_left(tmp_path, packings, shuffle):
    made = reshard(sources(tmp_path, packings), tmp_path / "new", 3, shuffle=shuffle)
    assert left_behind(tmp_path / "new") == [Path(file).name for file in made.files]


@PACKINGS
@pytest.mark.parametrize("shuffle", [False, True])
def test_damaged_records_are_an_error_that_leaves_nothing(tmp_path, packings, shuffle):
    files = sources(tmp_path, ("", packings[1]))
    Path(files[0]).write_bytes(flipped(Path(files[0]).read_bytes(), 400))
    with pytest.raises(CorruptRecord):
        reshard(files, tmp_path / "new", 3, shuffle=shuffle)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_damage_that_no_index_knows_of_is_an_error_that_leaves_nothing(tmp_path, shuffle, indexed):
    file = tmp_path / "large.tfrecord"
    file.write_bytes(flipped(stream_of(LARGE), 15 * 40_016 + 100))
    if indexed:
        assert not index_shards(file).damaged
    with pytest.raises(CorruptRecord):
        reshard(file, tmp_path / "new", 3, shuffle=shuffle)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("records", [RECORDS, LARGE], ids=["small", "large"])
def test_damaged_records_can_be_left_out_and_the_shards_are_even(tmp_path, records, shuffle):
    content, starts = stream_of(records), starts_of(records)
    for number in (0, 1, 2, 3, 9):
        content = flipped(content, starts[number] + 13)
    file = tmp_path / "old.tfrecord"
    file.write_bytes(content)
    index_shards(file)
    made = reshard(file, tmp_path / "new", 4, shuffle=shuffle, on_corrupt="skip")
    good = [record for number, record in enumerate(records) if number not in {0, 1, 2, 3, 9}]
    assert Counter(records_in(*made.files)) == Counter(good)
    assert [len(records_in(file)) for file in made.files] == list(made.records)
    assert max(made.records) - min(made.records) <= 1
    assert [damage[1] for damage in made.damaged] == [starts[number] for number in (0, 1, 2, 3, 9)]


def test_nothing_is_overwritten(tmp_path):
    files = sources(tmp_path, ("", ""))
    taken = tmp_path / "new" / "old-00001-of-00003.tfrecord"
    taken.parent.mkdir()
    taken.write_text("mine")
    with pytest.raises(WillNotOverwrite):
        reshard(files, tmp_path / "new", 3)
    assert left_behind(tmp_path / "new") == [taken.name]
    assert taken.read_text() == "mine"


def test_without_records_there_is_nothing_to_write(tmp_path):
    with pytest.raises(NothingToRead):
        reshard(write_shard(tmp_path / "empty", []), tmp_path / "new", 2)


def test_more_shards_than_files_may_be_open(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 40, hard))
    try:
        made = reshard(sources(tmp_path, ("", "")), tmp_path / "new", 101)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert made.records == (1,) * 101


def test_a_shard_that_shrinks_meanwhile_leaves_nothing(tmp_path, monkeypatch):
    files = sources(tmp_path, ("", ""))
    # the package has a function of the module's name
    module = sys.modules["anybatch.records.reshard"]
    monkeypatch.setattr(module, "even_counts", lambda records, shards: [records + 1])
    with pytest.raises(ShardChanged):
        reshard(files, tmp_path / "new", 1)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("files", "name", "first"),
    [
        (["a/train-00000-of-00002.tfrecord", "a/train-00001-of-00002.tfrecord"], None, "train"),
        (["mnist2.tfrecord"], None, "mnist2"),
        (["part_1.tfrecords.gz", "part_2.tfrecords.gz"], None, "part"),
        (["a.tfrecord", "b.tfrecord"], None, "data"),
        (["a.tfrecord"], "mine", "mine"),
    ],
)
def test_new_shards_are_called_as_the_old_ones_or_as_asked(files, name, first):
    names = new_names(files, Path("out"), 2, "", name)
    assert names == [f"out/{first}-0000{number}-of-00002.tfrecord" for number in range(2)]


@pytest.mark.parametrize("name", ["", "a/b", "../a", "/a"])
def test_a_name_is_no_path(name):
    with pytest.raises(ValueError, match="name is"):
        new_names(["a.tfrecord"], Path("out"), 2, "", name)


@given(st.integers(1, 10**9), st.integers(0, 2**31), st.integers(0, 2**31), st.integers(1, 200))
def test_batches_are_small_on_average_and_within_the_limit_at_worst(records, a, b, under_way):
    mean, largest = sorted((a, b))
    batch = batch_records(Sizes(records, mean * records, 0, largest), under_way)
    assert batch >= 1
    assert batch == 1 or batch * held_bytes(largest) <= 256 << 20
    assert batch == 1 or batch * mean * under_way <= 64 << 20
