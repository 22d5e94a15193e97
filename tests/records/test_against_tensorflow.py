"""For records as ordinary writers make them, our columns are those of tf.io.parse_example, bit by bit."""

from dataclasses import dataclass

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

import anybatch as ab
from anybatch.errors import FeatureError
from anybatch.records import RaggedColumn
from tests.records.contents import Contents, as_written, example, sequence_example
from tests.records.laws import law
from tests.records.tf_schemas import Asked, in_context, in_examples, in_lists, lists_for, record_for, several
from tests.shard_files import starts_of, write_shard

seeds = st.integers(0, 2**32)


def by_tensorflow(path, messages):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for message in messages:
            writer.write(message.SerializeToString())


def by_protobuf(path, messages):
    write_shard(path, [message.SerializeToString(deterministic=True) for message in messages])


def by_us(path, messages):
    ab.write(path, [message.SerializeToString() for message in messages])


def by_us_from_values(path, records):
    ab.write(path, [{name: as_written(values) for name, values in record.items()} for record in records])


writers = st.sampled_from([by_tensorflow, by_protobuf, by_us])


def in_shards(folder, records, count, write):
    """Write records into some shards, one after the other; return the paths."""
    paths = [folder / f"{number}.tfrecord" for number in range(count)]
    cuts = [len(records) * number // count for number in range(count + 1)]
    for path, start, stop in zip(paths, cuts, cuts[1:], strict=False):
        write(path, records[start:stop])
    return list(map(str, paths))


def read_by_tensorflow(paths):
    # a tf.data.Dataset takes 60 ms to make and to iterate, this next to nothing
    return [record for path in paths for record in tf.compat.v1.io.tf_record_iterator(path)]


def exact(ours, theirs):
    """Compare arrays bit by bit: NaNs are told apart, and zeros by their sign."""
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    assert ours.tolist() == theirs.tolist() if ours.dtype == object else ours.tobytes() == theirs.tobytes()


def same(ours, theirs):
    """Compare a column with what TensorFlow has parsed."""
    if isinstance(theirs, tf.SparseTensor):
        same_as_sparse(ours, theirs)
    elif isinstance(theirs, tf.RaggedTensor):
        same_as_ragged(ours, theirs)
    elif isinstance(ours, RaggedColumn):
        exact(ours.to_padded(), theirs.numpy())
    else:
        exact(np.asarray(ours), theirs.numpy())


def same_as_ragged(ours, theirs):
    for lengths in theirs.nested_row_lengths():
        assert ours.row_lengths.tolist() == lengths.numpy().tolist()
        ours = ours.values
    exact(np.asarray(ours), theirs.flat_values.numpy())


def same_as_sparse(ours, theirs):
    places = list(places_in(ours))
    assert places == theirs.indices.numpy().tolist()
    shape = [len(ours)]
    while isinstance(ours, RaggedColumn):
        shape.append(int(ours.row_lengths.max(initial=0)))
        ours = ours.values
    assert shape == theirs.dense_shape.numpy().tolist()
    exact(np.asarray(ours), theirs.values.numpy())


def places_in(column):
    """Yield row and place, in lists of lists row, step and place, of every value."""
    for number, one in enumerate(column):
        inner = places_in(one) if isinstance(one, RaggedColumn) else ([at] for at in range(len(one)))
        yield from ([number, *place] for place in inner)


def check_batches(paths, features, batch_size, parse):
    """Compare every column of every batch; the last batch may be smaller than the others."""
    stored = read_by_tensorflow(paths)
    starts = range(0, len(stored), batch_size)
    for start, batch in zip(starts, ab.read(paths, features).batch(batch_size), strict=True):
        parsed = parse(stored[start : start + batch_size])
        assert list(batch) == list(features)
        for name, column in batch.items():
            same(column, parsed[name])


@dataclass(frozen=True)
class Dataset:
    """A schema, what decides about the records that follow it, and how they are stored and read."""

    schema: dict[str, Asked]
    seed: int
    records: int
    shards: int
    batch_size: int

    def contents(self):
        contents = Contents(self.seed)
        return [record_for(self.schema, contents) for _ in range(self.records)]

    def check(self, folder, records, write):
        """Write the records, then read them as TensorFlow's features say, and as ours do."""
        paths = in_shards(folder, records, self.shards, write)
        theirs, ours = features_of(self.schema)
        for features in (theirs, ours):
            check_batches(paths, features, self.batch_size, lambda some: tf.io.parse_example(some, theirs))


def features_of(schema):
    theirs = {name: asked.theirs for name, asked in schema.items()}
    return theirs, {name: asked.ours for name, asked in schema.items()}


def datasets(*, least=1, most):
    schemas = several(in_examples, least=least, most=most)
    return st.builds(Dataset, schemas, seeds, st.integers(1, 20), st.integers(1, 3), st.integers(1, 7))


@law(datasets(most=6), writers, examples=150, soak=5_000)
def test_columns_are_those_of_parse_example(folder, dataset, write):
    dataset.check(folder, [example(record) for record in dataset.contents()], write)


@law(datasets(least=50, most=70), writers, examples=10, soak=300)
def test_among_many_features_each_is_found(folder, dataset, write):
    dataset.check(folder, [example(record) for record in dataset.contents()], write)


@law(datasets(most=6), examples=80, soak=5_000)
def test_what_we_write_is_to_tensorflow_what_it_is_to_us(folder, dataset):
    dataset.check(folder, dataset.contents(), by_us_from_values)


@law(several(in_context, most=5), seeds, writers, examples=20, soak=1_000)
def test_single_records_are_those_of_parse_single_example(folder, schema, seed, write):
    contents = Contents(seed)
    paths = in_shards(folder, [example(record_for(schema, contents)) for _ in range(3)], 1, write)
    theirs, _ = features_of(schema)
    elements = zip(read_by_tensorflow(paths), ab.read(paths, theirs), strict=True)
    for stored, element in elements:
        for name, parsed in tf.io.parse_single_example(stored, theirs).items():
            values = parsed.values if isinstance(parsed, tf.SparseTensor) else parsed
            exact(as_array(element[name]), as_array(values.numpy()))


def as_array(value):
    return np.array(value, object) if isinstance(value, bytes) else np.asarray(value)


contexts, lists = several(in_context, most=3), several(in_lists, most=4, prefix="list ")


@law(contexts, lists, seeds, writers, examples=150, soak=5_000)
def test_sequences_are_those_of_parse_sequence_example(folder, context, lists, seed, write):
    contents = Contents(seed)
    messages = [
        # TensorFlow refuses a context feature without a kind even if there is a default for it
        sequence_example(record_for(context, contents, kindless=False), lists_for(lists, contents))
        for _ in range(1 + contents.count(9))
    ]
    paths = in_shards(folder, messages, 2, write)
    their_context, our_context = features_of(context)
    their_lists, our_lists = features_of(lists)

    def parse(records):
        parsed_context, parsed_lists, _ = tf.io.parse_sequence_example(records, their_context, their_lists)
        return parsed_context | parsed_lists

    steps = {name: ab.Sequence(feature) for name, feature in their_lists.items()}
    check_batches(paths, their_context | steps, 4, parse)
    check_batches(paths, our_context | our_lists, 4, parse)


def test_a_context_feature_without_a_kind_has_its_default(tmp_path):
    """Where TensorFlow refuses in a SequenceExample what it fills up in an Example, we fill it up in both."""
    message = sequence_example({"x": None}, {"steps": []})
    by_protobuf(tmp_path / "x.tfrecord", [message])
    feature = tf.io.FixedLenFeature([], tf.int64, 7)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.parse_sequence_example([message.SerializeToString()], {"x": feature}, {})
    (record,) = ab.read(tmp_path / "x.tfrecord", {"x": feature})
    assert record == {"x": 7}


RAW = ["uint8", "int8", "uint16", "int16", "int32", "int64", "float16", "float32", "float64", "bool"]


@law(st.sampled_from(RAW), st.sampled_from([(), (1,), (3,), (2, 2), (0,)]), seeds, examples=40, soak=2_000)
def test_raw_values_are_those_of_decode_raw(folder, dtype, shape, seed):
    random = np.random.default_rng(seed)
    bits = random.integers(0, 2 if dtype == "bool" else 256, (5, np.zeros(shape, dtype).nbytes), "uint8")
    messages = [example({"x": [row.tobytes()], "y": np.array([1])}) for row in bits]
    by_tensorflow(folder / "x.tfrecord", messages)
    (batch,) = ab.read(folder / "x.tfrecord", {"x": ab.Raw(dtype, shape)}).batch(5)
    decoded = tf.io.decode_raw([row.tobytes() for row in bits], dtype).numpy().reshape(5, *shape)
    exact(batch["x"], decoded)


LARGE = 140_000
AROUND = {
    "numbers": example({"a": np.array([1, 2])}).SerializeToString(),
    "bytes": example({"z": [b"something"]}).SerializeToString(),
    "damage": b"\xff" * len(example({"z": [b"something"]}).SerializeToString()),
    "another value": example({"x": [bytes(LARGE)]}).SerializeToString(),
}
LAYOUTS = [
    ("value",),
    ("numbers", "value"),
    ("value", "bytes"),
    ("value", "damage"),
    ("numbers", "value", "bytes"),
    ("another value", "value"),
]


@law(st.lists(st.sampled_from(LAYOUTS), min_size=2, max_size=12), seeds, examples=20, soak=500)
def test_large_raw_values_are_found_wherever_they_lie(folder, layouts, seed):
    """Read records of 140 KB, alike as they mostly are, or with other things around the value."""
    values = [np.random.default_rng(seed + number).bytes(LARGE) for number in range(len(layouts))]
    records = [
        b"".join(AROUND.get(part) or example({"x": [value]}).SerializeToString() for part in layout)
        for layout, value in zip(layouts, values, strict=True)
    ]
    path = write_shard(folder / "x.tfrecord", records)
    features = {"a": ab.Ragged("int64"), "x": ab.Raw("uint8", (LARGE,)), "z": ab.Bytes(b"")}
    stream = ab.read(path, features, on_corrupt="skip")
    rows = [row for batch in stream.batch(5) for row in zip(*batch.values(), strict=True)]
    sound = [number for number, layout in enumerate(layouts) if "damage" not in layout]
    for number, (a, x, z) in zip(sound, rows, strict=True):
        assert x.tobytes() == values[number]
        assert a.tolist() == ([1, 2] if "numbers" in layouts[number] else [])
        assert z == (b"something" if "bytes" in layouts[number] else b"")
    assert {offset for _, offset, _, _ in stream.corrupt} == {
        start for number, start in enumerate(starts_of(records)[:-1]) if number not in sound
    }


INTS, FLOATS, NO_INTS = np.array([1, 2, 3]), np.array([0.5], "<f4"), np.array([], "<i8")
Fixed, Variable, Ragged = tf.io.FixedLenFeature, tf.io.VarLenFeature, tf.io.RaggedFeature
Padded = tf.io.FixedLenSequenceFeature

REFUSED = {
    "missing": ({}, Fixed([], tf.int64), "is missing; the record has: other"),
    "without a kind": ({"x": None}, Fixed([], tf.int64), "is missing; the record has: other, x"),
    "too many": ({"x": INTS}, Fixed([], tf.int64), "has 3 values; 1 were asked for"),
    "too few": ({"x": INTS}, Fixed([2, 2], tf.int64), "has 3 values; 4 were asked for"),
    "none": ({"x": NO_INTS}, Fixed([], tf.int64, 7), "has 0 values; 1 were asked for"),
    "another kind": ({"x": FLOATS}, Fixed([], tf.int64), "holds float values; int64 values were asked for"),
    "bytes": ({"x": [b"1"]}, Fixed([], tf.float32), "holds bytes values; float values were asked for"),
    "numbers": ({"x": FLOATS}, Fixed([], tf.string), "holds float values; bytes values were asked for"),
    "none of another kind": ({"x": NO_INTS}, Variable(tf.float32), "holds int64 values; float values"),
    "a list of another kind": ({"x": INTS}, Variable(tf.string), "holds int64 values; bytes values"),
    "ragged of another kind": ({"x": INTS}, Ragged(tf.float32), "holds int64 values; float values"),
    "padded of another kind": ({"x": INTS}, Padded([], tf.float32, True), "holds int64 values; float values"),
    "no whole items": (
        {"x": INTS},
        Padded([2], tf.int64, True),
        "has 3 values; multiples of 2 were asked for",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_tensorflow_refuses_we_refuse_with_its_place_and_both_numbers(what, tmp_path):
    values, feature, problem = REFUSED[what]
    message = example({"other": FLOATS} | values)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.parse_example([message.SerializeToString()], {"x": feature})
    check_refused(tmp_path, message, {"x": feature}, problem)


REFUSED_STEPS = {
    "missing": (None, Padded([], tf.int64), "is missing; the record has: other"),
    "too many": ([INTS[:1], INTS], Padded([], tf.int64), "step 1: has 3 values; 1 were asked for"),
    "too few": ([INTS], Padded([2, 2], tf.int64), "step 0: has 3 values; 4 were asked for"),
    "none": ([NO_INTS], Padded([], tf.int64), "step 0: has 0 values; 1 were asked for"),
    "without a kind": ([INTS[:1], None], Padded([], tf.int64), "step 1: has no value"),
    "another kind": ([FLOATS], Padded([], tf.int64), "step 0: holds float values; int64 values"),
    "a list of another kind": ([INTS], Variable(tf.string), "step 0: holds int64 values; bytes values"),
    "ragged of another kind": ([INTS], Ragged(tf.float32), "step 0: holds int64 values; float values"),
}


@pytest.mark.parametrize("what", REFUSED_STEPS)
def test_steps_that_tensorflow_refuses_we_refuse_with_their_number(what, tmp_path):
    steps, feature, problem = REFUSED_STEPS[what]
    message = sequence_example({"other": FLOATS}, {} if steps is None else {"x": steps})
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.parse_sequence_example([message.SerializeToString()], {}, {"x": feature})
    check_refused(tmp_path, message, {"x": ab.Sequence(feature)}, problem)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([b"12345"], "has 5 bytes; 8 were asked for"),
        ([b"1234", b"5678"], "has 2 bytes values; one was asked for"),
        ([], "has 0 bytes values; one was asked for"),
        (INTS, "holds int64 values; bytes values were asked for"),
        (None, "is missing; the record has: x"),
    ],
)
def test_a_raw_value_of_another_size_is_refused_with_both_numbers(values, problem, tmp_path):
    check_refused(tmp_path, example({"x": values}), {"x": ab.Raw("int32", (2,))}, problem)


def check_refused(folder, message, features, problem):
    """Read the message behind records that are left out; an error tells which record of which file it is."""
    paths = [str(folder / "0.tfrecord"), str(folder / "1.tfrecord")]
    records = [b"no message", message.SerializeToString()]
    write_shard(paths[0], records[:1])
    write_shard(paths[1], records)
    with pytest.raises(FeatureError) as refused:
        list(ab.read(paths, features, on_corrupt="skip"))
    assert (refused.value.feature, refused.value.file) == ("x", paths[1])
    assert refused.value.offset == starts_of(records)[1]
    assert problem in refused.value.problem
    assert paths[1] in str(refused.value)
