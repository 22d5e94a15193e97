import os

import pytest

from anybatch.records import find_shards, index_shards, verify
from anybatch.records.index import find_index, sidecar_paths
from tests.shard_files import flipped, some_records, starts_of, stream_of, write_shard

RECORDS = some_records(30)
LARGE = [bytes([number]) * 50_000 for number in range(8)]


def shard_of(file):
    return find_shards([file])[0]


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_sound_shards_are_verified_and_that_is_remembered(tmp_path, compression):
    files = [write_shard(tmp_path / f"{name}.tfrecord", RECORDS, compression) for name in "ab"]
    overview = verify(files)
    assert (overview.records, overview.damaged, overview.failed) == (60, (), ())
    assert all(shard.verified and shard.sidecar for shard in overview.shards)
    assert all(find_index(shard_of(file))[0].verified for file in files)


def test_any_flipped_byte_is_found_in_the_record_it_belongs_to(tmp_path):
    content, starts = stream_of(RECORDS), starts_of(RECORDS)
    files = []
    for at in range(0, len(content), 3):
        files.append(tmp_path / f"{at}.tfrecord")
        files[-1].write_bytes(flipped(content, at))
    for at, shard in zip(range(0, len(content), 3), verify(files).shards, strict=True):
        record = max(number for number, start in enumerate(starts) if start <= at)
        (damage,) = shard.damaged
        assert damage[:3] == (shard.file, starts[record], starts[record + 1] - starts[record])
        assert shard.records == len(RECORDS) - 1


def test_large_records_are_hopped_over_by_an_index_and_read_by_verify(tmp_path):
    file = tmp_path / "large.tfrecord"
    file.write_bytes(flipped(stream_of(LARGE), 3 * 50_016 + 700))
    (indexed,) = index_shards(file).shards
    assert not indexed.verified
    assert not indexed.damaged
    (verified,) = verify(file).shards
    assert verified.verified
    assert [damage[1] for damage in verified.damaged] == [3 * 50_016]
    (again,) = index_shards(file).shards
    assert again.from_sidecar
    assert again.damaged == verified.damaged


def test_a_verified_shard_is_read_again_unless_its_index_is_trusted(tmp_path):
    file = tmp_path / "large.tfrecord"
    content = stream_of(LARGE)
    file.write_bytes(content)
    before = file.stat()
    verify(file)
    # neither size nor time nor either end tells: as when a disk loses a bit
    file.write_bytes(flipped(content, 200_000))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    (trusted,) = verify(file, trust_index=True).shards
    assert trusted.from_sidecar
    assert not trusted.damaged
    (read,) = verify(file).shards
    assert not read.from_sidecar
    assert len(read.damaged) == 1


def test_a_changed_shard_is_read_again_though_its_index_is_trusted(tmp_path):
    file = write_shard(tmp_path / "a.tfrecord", RECORDS)
    verify(file)
    write_shard(file, RECORDS[:10])
    (shard,) = verify(file, trust_index=True).shards
    assert not shard.from_sidecar
    assert shard.records == 10


def test_a_shard_that_was_only_indexed_is_read_though_its_index_is_trusted(tmp_path):
    file = write_shard(tmp_path / "large.tfrecord", LARGE)
    index_shards(file)
    (shard,) = verify(file, trust_index=True).shards
    assert shard.verified
    assert not shard.from_sidecar


def test_files_that_cannot_be_examined_do_not_stop_the_others(tmp_path):
    good = write_shard(tmp_path / "good.tfrecord", RECORDS)
    text = tmp_path / "notes.txt"
    text.write_text("no records in here, only words")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    overview = verify([text, tmp_path / "missing", pipe, good])
    assert [shard.records for shard in overview.shards] == [0, 0, 0, 30]
    assert [shard.unreadable for shard in overview.failed] == [False, True, False]
    assert "text" in overview.shards[0].problem


def test_an_empty_file_is_a_shard_without_records(tmp_path):
    empty = write_shard(tmp_path / "empty.tfrecord", [])
    (shard,) = verify(empty).shards
    assert (shard.records, shard.verified, shard.problem) == (0, True, None)


def test_progress_adds_up_to_the_size_of_the_files(tmp_path):
    files = [write_shard(tmp_path / name, RECORDS, packed) for name, packed in (("a", ""), ("b", "GZIP"))]
    told = []
    overview = verify(files, progress=told.append)
    assert sum(told) == overview.file_bytes


def test_what_was_verified_into_the_cache_folder_is_found_there(tmp_path, monkeypatch):
    file = write_shard(tmp_path / "large.tfrecord", LARGE)
    index_shards(file)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    beside, cached = sidecar_paths(file)
    unverified = beside.read_bytes()
    verify(file)
    cached.parent.mkdir(parents=True)
    beside.rename(cached)
    beside.write_bytes(unverified)
    index, sidecar = find_index(shard_of(file))
    assert index.verified
    assert sidecar == cached


def test_force_makes_every_index_anew(tmp_path):
    file = write_shard(tmp_path / "a.tfrecord", RECORDS)
    assert [index_shards(file, force=force).shards[0].from_sidecar for force in (False, False, True)] == [
        False,
        True,
        False,
    ]
