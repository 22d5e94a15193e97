"""A state goes on with the data it was taken from, and with no other."""

import json
import shutil
from itertools import product

import numpy as np
import pytest

import anybatch as ab
from anybatch.stream import identity_of
from anybatch.stream.contents import OtherData
from anybatch.stream.places import NoState
from tests.shard_files import some_records, write_shard
from tests.stream.stream_laws import STATE_BYTES

FACTOR = 2


def rows(count, dtype="int64"):
    return ab.from_arrays(np.arange(count, dtype=dtype)).shuffle(seed=1)


def state_behind(stream, elements=2):
    passing = iter(stream)
    for _ in range(elements):
        next(passing)
    return json.loads(json.dumps(passing.get_state()))


def refusal(stream, state):
    with pytest.raises(OtherData) as refused:
        iter(stream).set_state(state)
    return str(refused.value)


@pytest.fixture
def files(tmp_path):
    return [
        write_shard(tmp_path / f"{name}.tfrecord", some_records(20, size=size))
        for name, size in [("a", 20), ("b", 30), ("c", 40)]
    ]


def read(*paths):
    return ab.read(list(paths), bytes)


def test_a_state_of_other_arrays_is_refused_with_both_lengths():
    told = refusal(rows(11), state_behind(rows(10)))
    assert "arrays of 10 rows (int64) then, arrays of 11 rows (int64) now" in told


def test_a_state_of_arrays_of_another_type_is_refused():
    refusal(rows(10, "float32"), state_behind(rows(10)))


@pytest.mark.parametrize(
    "ordered", [lambda one: one, lambda one: one.shuffle(seed=1), lambda one: one.batch(3)]
)
def test_a_state_of_other_files_is_refused_with_numbers(files, ordered):
    state = state_behind(ordered(read(*files[:2])))
    for others in [files[:1], files, files[1::-1], files[1:]]:
        told = refusal(ordered(read(*others)), state)
        assert "2 files of " in told
        assert f"{len(others)} file" in told


def test_a_file_with_as_many_bytes_and_other_content_is_another_file(tmp_path):
    first, second = some_records(20), [bytes(reversed(record)) for record in some_records(20)]
    state = state_behind(read(write_shard(tmp_path / "a.tfrecord", first)))
    told = refusal(read(write_shard(tmp_path / "b.tfrecord", second)), state)
    assert "then and now, but the content is another" in told


def test_files_may_be_moved_and_renamed(files, tmp_path):
    state = state_behind(read(*files).shuffle(seed=1))
    (tmp_path / "elsewhere").mkdir()
    moved = [shutil.move(file, tmp_path / "elsewhere" / f"{at}.records") for at, file in enumerate(files)]
    passing = iter(read(*moved).shuffle(seed=1))
    passing.set_state(state)
    assert sum(1 for _ in passing) == 58


def test_a_state_demands_no_index_of_a_stream_that_begins_without_one(files, tmp_path):
    state_behind(read(*files), elements=0)
    assert not list(tmp_path.glob(".*.abindex"))


def test_a_state_stays_small_however_many_sources_there_are(files):
    many = ab.concat([*(read(file) for file in files), *(read(*files) for _ in range(20))])
    wide = ab.from_arrays({f"column {at}": np.zeros(5) for at in range(100)})
    assert len(json.dumps(state_behind(many))) < STATE_BYTES
    assert len(json.dumps(state_behind(wide))) < STATE_BYTES


def test_any_of_several_sources_counts(files):
    state = state_behind(ab.concat([read(files[0]), read(files[1])]))
    refusal(ab.concat([read(files[0]), read(files[2])]), state)


def test_states_of_all_workers_are_refused_on_other_data():
    states = [state_behind(rows(10).shard(2, index)) for index in range(2)]
    told = refusal(rows(11).shard(3, 0), states)
    assert "10 rows" in told


def test_a_state_of_an_older_version_is_believed_with_a_warning(caplog):
    state = state_behind(rows(10))
    del state["data"]
    passing = iter(rows(10))
    passing.set_state(state | {"version": 1})
    assert "does not say which data" in caplog.text
    assert sum(1 for _ in passing) == 8


NO_PLACES = [5, {}, [], "x", {"position": -1}, {"position": "1"}]
SHAPES = {
    "order": rows(10),
    "counted off": rows(10).filter(lambda one: one >= 0).take(8),
    "repeated": rows(10).filter(lambda one: one >= 0).repeat(2),
    "in windows": rows(10).filter(lambda one: one >= 0).shuffle(window="1KiB"),
    "one after the other": ab.concat([rows(10), rows(5)]),
    "mixed": ab.mix([rows(10), rows(5)]),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["version", "stream", "data", "shard", "epoch", "at"])
def test_a_state_without_one_of_its_parts_is_none(shape, name):
    state = state_behind(SHAPES[shape])
    del state[name]
    with pytest.raises(NoState, match=name):
        iter(SHAPES[shape]).set_state(state)


@pytest.mark.parametrize(("shape", "at"), list(product(SHAPES, NO_PLACES)))
def test_a_place_that_is_none_is_refused_at_once(shape, at):
    state = state_behind(SHAPES[shape]) | {"at": at}
    with pytest.raises(NoState, match="its place"):
        iter(SHAPES[shape]).set_state(state)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_place_without_one_of_its_parts_is_refused_at_once(shape):
    state = state_behind(SHAPES[shape])
    for name in state["at"]:
        damaged = {part: value for part, value in state["at"].items() if part != name}
        with pytest.raises(NoState, match=name):
            iter(SHAPES[shape]).set_state(state | {"at": damaged})


@pytest.mark.parametrize("epoch", [None, -1, "0", 1.5, True])
def test_an_epoch_that_is_none_is_refused(epoch):
    with pytest.raises(NoState, match="epoch"):
        iter(rows(10)).set_state(state_behind(rows(10)) | {"epoch": epoch})


def test_equal_streams_have_one_identity_wherever_their_files_lie(files, tmp_path):
    one = identity_of(read(files[0]).map(lambda record: record).batch(4))
    shutil.copy(files[0], tmp_path / "copy.tfrecord")
    copied = read(str(tmp_path / "copy.tfrecord")).map(lambda record: record)
    assert identity_of(copied.batch(4).prefetch(3).limit_memory("64MiB")) == one


def test_other_files_features_functions_and_operations_have_other_identities(files):
    stream = read(files[0])
    all_of_them = [
        stream,
        read(files[1]),
        stream.batch(4),
        stream.batch(5),
        stream.map(lambda record: record),
        stream.map(lambda record: (record, 1)),
        stream.map(lambda record: (record, FACTOR)),
        stream.filter(lambda record: (record, 1)),
        ab.read(files[0], {"x": ab.Numbers()}),
        ab.read(files[0], {"x": ab.Numbers("int64")}),
    ]
    assert len({identity_of(one) for one in all_of_them}) == len(all_of_them)


def test_a_function_that_cannot_be_looked_into_counts_by_its_name():
    unknown = object()

    def scaled(row):
        return row, unknown

    def halved(row):
        return row, unknown

    identity = identity_of(rows(5).map(scaled))
    assert identity == identity_of(rows(5).map(scaled))
    assert identity != identity_of(rows(5).map(halved))
