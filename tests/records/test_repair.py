import gzip
import json
import zlib
from pathlib import Path

import pytest

from anybatch.errors import NotRecords, WillNotOverwrite
from anybatch.records import find_shards, repair, verify
from anybatch.records.index import load_index
from tests.shard_files import (
    PACK,
    flipped,
    framed,
    left_behind,
    records_in,
    some_records,
    starts_of,
    stream_of,
    write_shard,
)

RECORDS = some_records(40)
STREAM = stream_of(RECORDS)
STARTS = starts_of(RECORDS)
PACKINGS = pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])


def without(*numbers):
    return [record for number, record in enumerate(RECORDS) if number not in numbers]


def record_at(position):
    return max(number for number, start in enumerate(STARTS) if start <= position)


def repaired(tmp_path, content):
    source = tmp_path / "source" / "a.tfrecord"
    source.parent.mkdir(exist_ok=True)
    source.write_bytes(content)
    (made,) = repair(source, tmp_path / "clean")
    return made


def quarantine_of(made):
    return json.loads(Path(made.ledger).read_text()), Path(made.quarantine).read_bytes()


@PACKINGS
def test_flipped_bytes_cost_the_records_they_are_in_and_no_other(tmp_path, compression):
    # every place within a record comes about sooner or later, as their lengths differ
    places = range(0, len(STREAM), 7 if not compression else 29)
    sources = [tmp_path / f"{at:05d}.tfrecord" for at in places]
    for at, source in zip(places, sources, strict=True):
        source.write_bytes(PACK[compression](flipped(STREAM, at)))
    for at, made in zip(places, repair(sources, tmp_path / "clean"), strict=True):
        assert records_in(made.file) == without(record_at(at)), f"byte {at}"


@PACKINGS
@pytest.mark.parametrize("cut", [1, 11, 12, 30, 200, len(STREAM) - 1])
def test_a_cut_costs_what_is_behind_it(tmp_path, compression, cut):
    content = STREAM[:-cut]
    whole = [record for record, end in zip(RECORDS, STARTS[1:], strict=True) if end <= len(content)]
    if not whole:
        with pytest.raises(NotRecords):
            repaired(tmp_path, PACK[compression](content))
        return
    made = repaired(tmp_path, PACK[compression](content))
    assert records_in(made.file) == whole


@PACKINGS
def test_several_damages_cost_several_records(tmp_path, compression):
    content = STREAM
    for number in (0, 7, 8, 25, 39):
        content = flipped(content, STARTS[number] + 14)
    content = content[: STARTS[30]] + b"garbage between records" + content[STARTS[30] :]
    made = repaired(tmp_path, PACK[compression](content))
    assert records_in(made.file) == without(0, 7, 8, 25, 39)
    assert made.records == 35


@PACKINGS
def test_no_byte_is_lost_between_the_copy_and_the_quarantine(tmp_path, compression):
    content = flipped(flipped(STREAM, 500), 900)[:-9]
    made = repaired(tmp_path, PACK[compression](content))
    ledger, damaged = quarantine_of(made)
    kept = stream_of(records_in(made.file))
    assert len(kept) + len(damaged) == len(content)
    for piece in ledger["pieces"]:
        there = content[piece["offset"] : piece["offset"] + piece["length"]]
        assert damaged[piece["at"] : piece["at"] + piece["length"]] == there
    assert ledger["file"] == made.source
    assert ledger["records_kept"] == made.records


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
@pytest.mark.parametrize("part", [0.3, 0.6, 0.95])
@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_what_could_be_decompressed_before_the_damage_is_kept(tmp_path, compression, part, damage):
    packed = PACK[compression](STREAM)
    at = int(len(packed) * part)
    packed = packed[:at] if damage == "cut" else flipped(packed, at)
    came_out = decompressible(packed, {"GZIP": 31, "ZLIB": 15}[compression])
    made = repaired(tmp_path, packed)
    good = [
        record
        for record, at in zip(RECORDS, STARTS, strict=False)
        if framed(record) == came_out[at:][: len(record) + 16]
    ]
    assert records_in(made.file)[: len(good)] == good
    assert set(records_in(made.file)) <= set(RECORDS)
    assert verify(made.file).damaged == ()


def decompressible(packed, window_bits):
    inflater, out = zlib.decompressobj(window_bits), b""
    try:
        for at in range(len(packed)):
            out += inflater.decompress(packed[at : at + 1])
    except zlib.error:
        pass
    return out


def test_all_members_of_a_pasted_gzip_file_are_read(tmp_path):
    half = STARTS[20]
    content = gzip.compress(flipped(STREAM[:half], 40)) + gzip.compress(STREAM[half:])
    made = repaired(tmp_path, content)
    assert records_in(made.file) == without(record_at(40))


def test_a_member_larger_than_what_is_decompressed_at_once_is_read_whole(tmp_path):
    records = [bytes(3_000_000), b"small", bytes(9_000_000), b"last"]
    content = stream_of(records)
    made = repaired(tmp_path, gzip.compress(flipped(content, 3_000_016 + 13)))
    assert records_in(made.file) == [records[0], records[2], records[3]]


@PACKINGS
def test_undamaged_shards_are_copied_byte_for_byte(tmp_path, compression):
    source = write_shard(tmp_path / "a.tfrecord", RECORDS, compression)
    (made,) = repair(source, tmp_path / "clean")
    assert Path(made.file).read_bytes() == Path(source).read_bytes()
    assert (made.damaged, made.quarantine) == ((), None)
    assert load_index(find_shards([made.file])[0]).verified


def test_undamaged_shards_can_be_left_where_they_are(tmp_path):
    good = write_shard(tmp_path / "good.tfrecord", RECORDS)
    bad = tmp_path / "bad.tfrecord"
    bad.write_bytes(flipped(STREAM, 100))
    made = repair([good, bad], tmp_path / "clean", only_damaged=True)
    assert [one.file for one in made] == [None, str(tmp_path / "clean" / "bad.tfrecord")]
    assert [name for name in left_behind(tmp_path / "clean") if not name.startswith(".")] == [
        "bad.tfrecord",
        "bad.tfrecord.damaged",
        "bad.tfrecord.damaged.json",
    ]


def test_an_empty_shard_stays_an_empty_shard(tmp_path):
    (made,) = repair(write_shard(tmp_path / "empty.tfrecord", []), tmp_path / "clean")
    assert Path(made.file).read_bytes() == b""


@PACKINGS
def test_a_shard_of_nothing_but_damaged_records_becomes_empty(tmp_path, compression):
    content = b"".join(flipped(framed(record), 14) for record in RECORDS[:5])
    made = repaired(tmp_path, PACK[compression](content))
    assert made.records == 0
    assert len(made.damaged) == 5


def test_the_folder_of_the_shards_is_refused_and_nothing_in_it_changes(tmp_path):
    bad = tmp_path / "bad.tfrecord"
    bad.write_bytes(flipped(STREAM, 100))
    with pytest.raises(WillNotOverwrite):
        repair(bad, tmp_path)
    assert left_behind(tmp_path) == ["bad.tfrecord"]
    assert bad.read_bytes() == flipped(STREAM, 100)


def test_an_earlier_quarantine_is_not_overwritten(tmp_path):
    source = tmp_path / "bad.tfrecord"
    source.write_bytes(flipped(STREAM, 100))
    clean = tmp_path / "clean"
    clean.mkdir()
    (clean / "bad.tfrecord.damaged").write_text("mine")
    with pytest.raises(WillNotOverwrite):
        repair(source, clean)
    assert left_behind(clean) == ["bad.tfrecord.damaged"]
    assert (clean / "bad.tfrecord.damaged").read_text() == "mine"


def test_a_shard_called_as_another_ones_quarantine_is_refused(tmp_path):
    for name in ("a", "a.damaged"):
        (tmp_path / name).write_bytes(flipped(STREAM, 100))
    with pytest.raises(WillNotOverwrite):
        repair([tmp_path / "a", tmp_path / "a.damaged"], tmp_path / "clean")
    assert not (tmp_path / "clean").exists()


def test_two_shards_of_one_name_are_refused(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_shard(tmp_path / folder / "x.tfrecord", RECORDS)
    with pytest.raises(ValueError, match=r"x\.tfrecord"):
        repair([tmp_path / "a/x.tfrecord", tmp_path / "b/x.tfrecord"], tmp_path / "clean")


def test_a_file_that_is_no_shard_leaves_nothing_behind(tmp_path):
    good = write_shard(tmp_path / "good.tfrecord", RECORDS)
    text = tmp_path / "notes.txt"
    text.write_text("words, words, words")
    with pytest.raises(NotRecords):
        repair([good, text], tmp_path / "new" / "clean")
    assert left_behind(tmp_path) == ["good.tfrecord", "notes.txt"]
