"""What we write is what TensorFlow writes, and a data set appears whole or not at all."""

import errno
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

import anybatch as ab
from anybatch.errors import AnybatchWarning, BadFeature, NothingToRead, WillNotOverwrite
from anybatch.records.reshard import reshard
from anybatch.records.write import encode
from tests.records.contents import Contents, as_written, example
from tests.records.laws import law
from tests.shard_files import left_behind, records_in, write_shard

DTYPES = ("bytes", "float32", "int64")
seeds = st.integers(0, 2**32)


@law(
    st.text(max_size=5),
    st.none() | st.sampled_from(DTYPES),
    st.integers(0, 300),
    seeds,
    examples=150,
    soak=10_000,
)
def test_a_file_is_that_of_tensorflow_byte_by_byte(folder, name, dtype, count, seed):
    """With one name only: protobuf does not say in which order several come."""
    contents = Contents(seed)
    records = [{name: None if dtype is None else contents.values(dtype, count)} for _ in range(2)]
    with tf.io.TFRecordWriter(str(folder / "theirs")) as writer:
        for record in records:
            writer.write(example(record).SerializeToString(deterministic=True))
    ab.write(
        folder / "ours",
        [{name: as_written(values) for name, values in record.items()} for record in records],
    )
    assert (folder / "ours").read_bytes() == (folder / "theirs").read_bytes()


@st.composite
def records(draw):
    contents = Contents(draw(seeds))
    dtypes = draw(st.dictionaries(st.text(max_size=5), st.none() | st.sampled_from(DTYPES), max_size=6))
    return {
        name: None if dtype is None else contents.values(dtype, contents.count(4))
        for name, dtype in dtypes.items()
    }


@law(records(), examples=200, soak=10_000)
def test_a_record_holds_the_same_as_that_of_protobuf(folder, record):
    ab.write(folder / "x", [{name: as_written(values) for name, values in record.items()}])
    ours = tf.train.Example.FromString(*records_in(folder / "x"))
    theirs = example(record)
    theirs.features.SetInParent()
    assert ours.SerializeToString(deterministic=True) == theirs.SerializeToString(deterministic=True)


def values_of(value):
    """Return the kind and the values that a single value is stored as."""
    (feature,) = tf.train.Example.FromString(encode({"x": value})).features.feature.values()
    kind = feature.WhichOneof("kind")
    return kind, kind and list(getattr(feature, kind).value)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (7, ("int64_list", [7])),
        (True, ("int64_list", [1])),
        (-(2**63), ("int64_list", [-(2**63)])),
        (2**63 - 1, ("int64_list", [2**63 - 1])),
        (np.uint64(2**63 - 1), ("int64_list", [2**63 - 1])),
        (2.5, ("float_list", [2.5])),
        (0.1, ("float_list", [float(np.float32(0.1))])),
        (float("-inf"), ("float_list", [float("-inf")])),
        (np.float16(2), ("float_list", [2.0])),
        (np.array([1.5], ">f8"), ("float_list", [1.5])),
        (np.array([258], ">i2"), ("int64_list", [258])),
        ([1, 2.5], ("float_list", [1.0, 2.5])),
        ([[1, 2], [3, 4]], ("int64_list", [1, 2, 3, 4])),
        (np.arange(8).reshape(2, 2, 2)[:, ::-1, 0], ("int64_list", [2, 0, 6, 4])),
        (range(3), ("int64_list", [0, 1, 2])),
        ([True, False], ("int64_list", [1, 0])),
        (np.array(3), ("int64_list", [3])),
        (b"a\0", ("bytes_list", [b"a\0"])),
        ("é", ("bytes_list", ["é".encode()])),
        (["é", b"a\0"], ("bytes_list", ["é".encode(), b"a\0"])),
        (bytearray(b"x"), ("bytes_list", [b"x"])),
        ([bytearray(b"x"), memoryview(b"y")], ("bytes_list", [b"x", b"y"])),
        (np.array([["a"], ["b"]]), ("bytes_list", [b"a", b"b"])),
        (np.array([b"a\0", b""], object), ("bytes_list", [b"a\0", b""])),
        (np.array([], "float64"), ("float_list", [])),
        (np.array([], "uint8"), ("int64_list", [])),
        (np.array([], object), ("bytes_list", [])),
        ([], (None, None)),
        ([[], []], (None, None)),
    ],
)
def test_a_value_is_stored_as_what_it_is(value, stored):
    assert values_of(value) == stored


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (2**63, "it holds 9223372036854775808, which no int64 can hold"),
        (-(2**63) - 1, "it holds -9223372036854775809, which"),
        ([2**63, -1], "it holds 9223372036854775808, which"),
        (np.array([1, 2**64 - 1], "uint64"), "it holds 18446744073709551615, which"),
        (1e300, r"it holds 1e\+300, which no float32 can hold"),
        (np.array([1.0, -1e39]), r"it holds -1e\+39, which"),
        ([[1], [2, 3]], "lists of different lengths"),
        (None, "NoneType"),
        ([1, None], "it holds int and NoneType in one list"),
        ([1, "b", 2], "it holds int and str in one list; a record can hold .* lists of one of them"),
        ([["a"], ["b"]], "it holds str in lists within one list"),
        ({1, 2}, "it holds set"),
        (1j, "complex128"),
        ([b"a", 1], "a record can hold"),
        ("\ud800", "surrogate"),
    ],
)
def test_a_value_that_would_be_lost_is_refused_by_its_name(value, problem):
    with pytest.raises(BadFeature, match=f"feature `x`: .*{problem}"):
        encode({"x": value})


@pytest.mark.parametrize(
    ("record", "refusal"),
    [(5, TypeError), ("text", TypeError), ({1: 2}, BadFeature), ({"\ud800": 1}, BadFeature)],
)
def test_what_is_no_record_is_refused(record, refusal):
    with pytest.raises(refusal) as refused:
        encode(record)
    str(refused.value).encode()


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("source", [list, iter])
def test_a_refused_record_is_named_by_its_number_and_the_file(shards, source, tmp_path):
    path = tmp_path / "x.tfrecord"
    some = [{"a": None if number == 5000 else number} for number in range(5010)]
    with pytest.raises(BadFeature, match=f"record 5,000 for `{path}`: feature `a`: it holds NoneType"):
        ab.write(path, source(some), shards=shards)
    with pytest.raises(TypeError, match=f"record 2 for `{path}`: a record is a mapping .* got int"):
        ab.write(path, source([b"1", b"2", 3]), shards=shards)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", ["data", "data/", "new/"])
def test_a_folder_in_place_of_the_file_is_refused_with_the_way_out(overwrite, name, tmp_path):
    (tmp_path / "data").mkdir()
    told = f"is a folder; name a file in it, such as `{tmp_path}/{name.rstrip('/')}/data.tfrecord`"
    with pytest.raises(IsADirectoryError, match=told):
        ab.write(f"{tmp_path}/{name}", never(), overwrite=overwrite)
    assert left_behind(tmp_path) == ["data"]


@pytest.mark.parametrize("compression", [None, "GZIP", "ZLIB"])
def test_tensorflow_reads_what_we_compress(compression, tmp_path):
    some = [b"%d" % number * number for number in range(200)]
    path = tmp_path / "x.tfrecord"
    ab.write(path, some, compression=compression)
    options = tf.io.TFRecordOptions(compression_type=compression or "")
    assert list(tf.compat.v1.io.tf_record_iterator(str(path), options)) == some
    assert records_in(path) == some


def as_generator(some):
    yield from some


class Announced:
    """Records that say how many they are, rightly or not, or that they do not know."""

    def __init__(self, some, length):
        self.some, self.length = some, length

    def __iter__(self):
        return iter(self.some)

    def __len__(self):
        if self.length is None:
            raise TypeError("nobody knows")
        return self.length


SOURCES = {
    "a list": list,
    "a generator": as_generator,
    "a stream of unknown length": lambda some: Announced(some, None),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("count", [0, 1, 2, 7, 3000])
@pytest.mark.parametrize("shards", [1, 2, 3, 8])
def test_shards_hold_all_records_in_order_and_evenly(source, count, shards, tmp_path):
    some = [b"%d" % number for number in range(count)]
    paths = ab.write(tmp_path / "x.tfrecord", SOURCES[source](some), shards=shards)
    assert left_behind(tmp_path) == [Path(path).name for path in paths]
    held = [records_in(path) for path in paths]
    assert [record for part in held for record in part] == some
    assert max(map(len, held)) - min(map(len, held)) <= 1


@pytest.mark.parametrize("announced", [0, 3, 10, 100])
def test_a_wrong_length_costs_no_record(announced, tmp_path):
    some = [b"%d" % number for number in range(10)]
    for shards in (1, 3):
        paths = ab.write(tmp_path / f"{shards}.tfrecord", Announced(some, announced), shards=shards)
        assert records_in(*paths) == some


def test_a_stream_is_written_back_as_it_was_read(tmp_path):
    contents = Contents(1)
    kinds = {"a": ("float32", 2), "b": ("bytes", 1), "c": ("int64", 0), "d": ("bytes", 0)}
    some = [{name: contents.values(*kind) for name, kind in kinds.items()} for _ in range(20)]
    path = write_shard(tmp_path / "x.tfrecord", [example(record).SerializeToString() for record in some])
    (copy,) = ab.write(tmp_path / "copy.tfrecord", ab.read(path))
    messages = [[tf.train.Example.FromString(record) for record in records_in(file)] for file in (path, copy)]
    kept = [[message.SerializeToString(deterministic=True) for message in file] for file in messages]
    assert kept[0] == kept[1]


@pytest.mark.parametrize(
    ("path", "first"),
    [
        ("x", "x-00000-of-00002.tfrecord"),
        ("x.tfrecord", "x-00000-of-00002.tfrecord"),
        ("x.tfrecords", "x-00000-of-00002.tfrecords"),
        ("x.tfrecord.gz", "x-00000-of-00002.tfrecord.gz"),
        ("x.gz", "x-00000-of-00002.tfrecord.gz"),
        ("x.v1", "x.v1-00000-of-00002.tfrecord"),
        ("new/folder/x", "new/folder/x-00000-of-00002.tfrecord"),
    ],
)
def test_shards_are_named_as_tensorflow_names_them(path, first, tmp_path):
    files = ab.write(tmp_path / path, [b"1", b"2"], shards=2)
    assert files == [str(tmp_path / first), str(tmp_path / first).replace("00000-of", "00001-of")]
    assert all(Path(file).is_file() for file in files)


def test_one_shard_has_the_name_that_was_given(tmp_path):
    assert ab.write(tmp_path / "some name", [b"1"]) == [str(tmp_path / "some name")]
    assert records_in(tmp_path / "some name") == [b"1"]


def test_no_records_are_an_empty_file(tmp_path):
    (path,) = ab.write(tmp_path / "x", [])
    assert Path(path).read_bytes() == b""
    with pytest.raises(NothingToRead):
        list(ab.read(path, bytes))


@pytest.mark.parametrize("shards", [0, -1])
def test_fewer_shards_than_one_are_refused(shards, tmp_path):
    with pytest.raises(ValueError, match=f"shards is {shards}"):
        ab.write(tmp_path / "x", [b"1"], shards=shards)


def never():
    pytest.fail("nothing should be asked for records that cannot be written")
    yield


@pytest.mark.parametrize("shards", [1, 3])
def test_what_is_there_is_kept_unless_overwrite_says_otherwise(shards, tmp_path):
    *_, last = ab.write(tmp_path / "x", [b"old"] * 5, shards=shards)
    before = Path(last).read_bytes()
    with pytest.raises(WillNotOverwrite):
        ab.write(tmp_path / "x", never(), shards=shards)
    assert Path(last).read_bytes() == before
    paths = ab.write(tmp_path / "x", [b"new"] * 5, shards=shards, overwrite=True)
    assert records_in(*paths) == [b"new"] * 5


def test_one_shard_that_is_there_keeps_all_from_being_written(tmp_path):
    (tmp_path / "x-00002-of-00003.tfrecord").write_bytes(b"")
    with pytest.raises(WillNotOverwrite):
        ab.write(tmp_path / "x", never(), shards=3)
    assert left_behind(tmp_path) == ["x-00002-of-00003.tfrecord"]


class Stumbles(Exception):
    """What a source of records may raise."""


class StumblingList(list):
    """A list that knows its length and fails at one of its records."""

    def __iter__(self):
        return stumbling(len(self), self[0])


def stumbling(count, at):
    for number in range(count):
        if number == at:
            raise Stumbles
        yield {"x": number}


def interrupted(at):
    try:
        yield from stumbling(7, at)
    except Stumbles:
        raise KeyboardInterrupt from None


FAILURES = {
    "a generator that raises": (lambda at: stumbling(7, at), Stumbles),
    "a list that raises": (lambda at: StumblingList([at] * 7), Stumbles),
    "a record that cannot be written": (
        lambda at: [{"x": None if number == at else number} for number in range(7)],
        BadFeature,
    ),
    "an interruption": (interrupted, KeyboardInterrupt),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_a_failure_at_any_record_leaves_nothing_behind(failure, shards, compression, tmp_path):
    source, raised = FAILURES[failure]
    for at in range(7):
        with pytest.raises(raised):
            ab.write(tmp_path / "new" / "x", source(at), shards=shards, compression=compression)
        assert left_behind(tmp_path) == []


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("shards", [1, 3])
def test_a_failure_at_any_record_leaves_the_old_files_as_they_were(failure, shards, tmp_path):
    source, raised = FAILURES[failure]
    paths = ab.write(tmp_path / "x", [b"old"] * 7, shards=shards)
    for at in range(7):
        with pytest.raises(raised):
            ab.write(tmp_path / "x", source(at), shards=shards, overwrite=True)
        assert left_behind(tmp_path) == [Path(path).name for path in paths]
    assert records_in(*paths) == [b"old"] * 7


def test_a_file_that_appears_meanwhile_is_kept(tmp_path):
    def some():
        yield b"1"
        (tmp_path / "x").write_bytes(b"theirs")

    with pytest.raises(WillNotOverwrite):
        ab.write(tmp_path / "x", some())
    assert left_behind(tmp_path) == ["x"]
    assert (tmp_path / "x").read_bytes() == b"theirs"


ON_A_FULL_DISK = """
import random, resource, sys
import anybatch as ab

limit_bytes, shards, compression, known_length = eval(sys.argv[2])
records = [random.Random(number).randbytes(30_000) for number in range(100)]
resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
try:
    ab.write(sys.argv[1], records if known_length else iter(records), shards=shards, compression=compression)
except OSError as error:
    print(error.errno)
"""


@pytest.mark.parametrize("limit_bytes", [0, 1, 100_000, 1 << 20, 1_900_000])
@pytest.mark.parametrize("known_length", [True, False])
def test_a_full_disk_leaves_nothing_behind(limit_bytes, known_length, tmp_path):
    for shards, compression in ((1, None), (2, None), (1, "GZIP")):
        told = repr((limit_bytes // shards, shards, compression, known_length))
        command = [sys.executable, "-c", ON_A_FULL_DISK, str(tmp_path / "new" / "x"), told]
        ended = subprocess.run(command, capture_output=True, text=True, check=True)
        assert ended.stdout == f"{errno.EFBIG}\n"
        assert left_behind(tmp_path) == []


@pytest.mark.parametrize(("first", "second"), [(2, 3), (1, 2)])
def test_records_beside_another_set_of_their_name_are_written_and_that_is_said(first, second, tmp_path):
    path = tmp_path / "a.tfrecord"
    files = ab.write(path, [{"x": 1}] * 6, shards=first)
    with pytest.warns(AnybatchWarning, match=f"^`{re.escape(files[0])}` is of another set of shards"):
        more = ab.write(path, [{"x": 1}] * 6, shards=second)
    assert left_behind(tmp_path) == sorted(Path(file).name for file in [*files, *more])
    ab.write(tmp_path / "a-2.tfrecord", [{"x": 1}], shards=second)


def test_records_dealt_beside_themselves_are_said_to_be_there_twice(tmp_path):
    ab.write(tmp_path / "a.tfrecord", [{"x": 1}] * 6)
    with pytest.warns(AnybatchWarning, match=r"a.tfrecord` holds these records already"):
        reshard([tmp_path / "a.tfrecord"], tmp_path, 2)
