"""On unusual wire we read what protobuf's own parser reads, and refuse what it refuses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import strategies as st

import anybatch as ab
from anybatch.errors import CorruptRecord
from anybatch.records import RaggedColumn, Shard
from anybatch.records.infer import sample
from tests.records import wire
from tests.records.laws import law
from tests.records.wire import (
    DELIMITED,
    END_GROUP,
    FIXED32,
    GROUP,
    VARINT,
    delimited,
    group,
    groups,
    tag,
    varint,
)
from tests.shard_files import OVERHEAD, starts_of, write_shard

Example, SequenceExample = tf.train.Example, tf.train.SequenceExample
DTYPES = {"bytes_list": "bytes", "float_list": "float32", "int64_list": "int64"}
SEVERAL = "steps of several kinds"


def parsed(record, message):
    try:
        return message.FromString(record)
    except DecodeError:
        return None


def bits(floats):
    return np.asarray(floats, "<f4").view("<u4").tolist()


def stored_floats(float_list):
    """Return float32 values as they are stored: as Python floats, signalling NaNs would become quiet."""
    float_list.DiscardUnknownFields()
    packed = float_list.SerializeToString()
    return bits(np.frombuffer(packed[len(packed) - 4 * len(float_list.value) :], "<f4"))


def kind_of_feature(feature):
    return feature.WhichOneof("kind")


def values_of_feature(feature):
    kind = feature.WhichOneof("kind")
    if kind == "float_list":
        return stored_floats(feature.float_list)
    return list(getattr(feature, kind).value) if kind else []


def kind_of_list(feature_list):
    kinds = {kind_of_feature(feature) for feature in feature_list.feature} - {None}
    return SEVERAL if len(kinds) > 1 else next(iter(kinds), None)


def values_of_list(feature_list):
    return [values_of_feature(feature) for feature in feature_list.feature]


@dataclass(frozen=True)
class Part:
    """One of a message's maps: how protobuf shows it, and how we are asked for it."""

    contents: Callable[[Any], Any]
    kind: Callable[[Any], str | None]
    values: Callable[[Any], list]
    feature: Callable[[Any], Any]

    def of(self, message):
        """Return the kind and the values under every name."""
        found = [self.contents(message).get(name) for name in wire.NAMES]
        return [(None, []) if one is None else (self.kind(one), self.values(one)) for one in found]


FEATURES = Part(lambda message: message.features.feature, kind_of_feature, values_of_feature, lambda one: one)
CONTEXT = Part(lambda message: message.context.feature, kind_of_feature, values_of_feature, lambda one: one)
LISTS = Part(lambda message: message.feature_lists.feature_list, kind_of_list, values_of_list, ab.Sequence)
PARTS = {Example: [FEATURES], SequenceExample: [CONTEXT, LISTS]}


def known_to_protobuf(record, message):
    """Return the kinds and the values under all names, or None if protobuf refuses the record."""
    read = parsed(record, message)
    if read is None:
        return None
    found = [one for part in PARTS[message] for one in part.of(read)]
    return tuple(kind for kind, _ in found), tuple(values for _, values in found)


def features_of(message, kinds):
    places = [(part, name) for part in PARTS[message] for name in wire.NAMES]
    return {
        str(number): part.feature(ab.Ragged(DTYPES.get(kind, "int64"), key=name))
        for number, ((part, name), kind) in enumerate(zip(places, kinds, strict=True))
    }


def plain(value):
    """Return what we decoded as lists, floats as their bits."""
    if isinstance(value, RaggedColumn):
        return [plain(row) for row in value]
    if isinstance(value, np.ndarray):
        return bits(value) if value.dtype == "float32" else value.tolist()
    return value


def read_back(folder, records, features):
    """Return each record's row, or None where we call it damaged."""
    if not records:
        return []
    path = folder / f"{len(list(folder.iterdir()))}.tfrecord"
    write_shard(path, records)
    stream = ab.read(path, features, on_corrupt="skip")
    sound = iter([row for batch in stream.batch(7) for row in zip(*map(plain, batch.values()), strict=True)])
    damaged = {offset for _, offset, _, reason in stream.corrupt if "no tf.train.Example" in reason}
    rows = [None if offset in damaged else next(sound) for offset in starts_of(records)[:-1]]
    assert list(sound) == []
    return rows


def delimited_fields(message):
    """Return number and bytes of each delimited field, as protobuf cuts any message."""
    flat = parsed(message, Empty)
    fields = [] if flat is None else UnknownFieldSet(flat)
    return [(field.field_number, field.data) for field in fields if field.wire_type == wire.DELIMITED]


def names_in(record):
    """Return every name that stands in a map of the record, as far as it can be cut into fields."""
    entries = [
        entry
        for number, a_map in delimited_fields(record)
        if number < 3
        for _, entry in delimited_fields(a_map)
    ]
    return {name for entry in entries for number, name in delimited_fields(entry) if number == 1}


def is_asked_for(record):
    """Return whether a refused record has none but the names that every test asks for, or none at all."""
    return names_in(record) <= {*(name.encode() for name in wire.NAMES), *wire.NO_UTF8}


def check_against_protobuf(folder, records, message):
    """Read each record with all that it holds; what protobuf refuses is damaged, whatever is asked for."""
    known = [known_to_protobuf(record, message) for record in records]
    schemas = {one[0] for one in known if one is not None and SEVERAL not in one[0]}
    for kinds in schemas or {known_to_protobuf(b"", message)[0]}:
        chosen = [
            (record, one)
            for record, one in zip(records, known, strict=True)
            if (is_asked_for(record) if one is None else one[0] == kinds)
        ]
        rows = read_back(folder, [record for record, _ in chosen], features_of(message, kinds))
        assert rows == [None if one is None else one[1] for _, one in chosen]


def malformed(folder, records):
    path = folder / "all.tfrecord"
    write_shard(path, records)
    return sample(Shard(str(path), "")).malformed


ONE, TWO = varint(1), varint(2)
INTS, FLOATS = delimited(3, delimited(1, ONE + TWO)), delimited(2, delimited(1, bytes(8)))
KEY, VALUE = delimited(1, b"a"), delimited(2, INTS)


def entry(fields):
    return delimited(1, delimited(1, fields))


def feature(fields):
    return entry(KEY + delimited(2, fields))


def ints(fields):
    return feature(delimited(3, fields))


TAKEN = {
    "nothing at all": b"",
    "features without an entry": delimited(1, b""),
    "an entry without key and value": entry(b""),
    "an entry without a key": entry(VALUE),
    "an entry without a value": entry(KEY),
    "the value before the key": entry(VALUE + KEY),
    "two keys": entry(delimited(1, b"b") + VALUE + KEY),
    "two values": entry(KEY + VALUE + VALUE),
    "two values of two kinds": entry(KEY + VALUE + delimited(2, FLOATS)),
    "two entries of one key": entry(KEY + VALUE) + entry(KEY + delimited(2, FLOATS)),
    "an entry without a value after one with it": entry(KEY + VALUE) + entry(KEY),
    "two maps": delimited(1, delimited(1, KEY + VALUE))
    + delimited(1, delimited(1, delimited(1, b"") + VALUE)),
    "a feature without a kind": feature(b""),
    "a list without values": feature(delimited(3, b"")),
    "two kinds": feature(FLOATS + INTS),
    "one kind twice": feature(INTS + INTS),
    "a kind, another, and the first again": feature(INTS + FLOATS + INTS),
    "values packed, unpacked and packed": ints(delimited(1, ONE) + tag(1, VARINT) + TWO + delimited(1, ONE)),
    "an empty run": ints(delimited(1, b"") + delimited(1, ONE)),
    "floats packed and unpacked": feature(delimited(2, tag(1, FIXED32) + b"abcd" + delimited(1, b"efgh"))),
    "a value in ten bytes with bits to spare": ints(delimited(1, b"\xff" * 9 + b"\x7f")),
    "a value in more bytes than it needs": ints(tag(1, VARINT) + varint(1, surplus=9)),
    "a tag in five bytes": varint(1 << 3 | DELIMITED, surplus=4) + b"\0",
    "a length in five bytes": tag(1, DELIMITED) + varint(0, surplus=4),
    "the largest field number": tag(2**29 - 1, VARINT) + ONE,
    "a known field of another type": tag(1, VARINT) + ONE + entry(KEY + VALUE),
    "an unknown field in the map": delimited(1, delimited(1, KEY + VALUE) + tag(9, VARINT) + ONE),
    "an unknown field in an entry": entry(KEY + VALUE + tag(9, VARINT) + ONE),
    "an unknown field in a feature": feature(INTS + tag(9, VARINT) + ONE),
    "an unknown field in a list": ints(delimited(1, ONE) + tag(9, VARINT) + ONE),
    "a group": group(9, group(1, tag(2, FIXED32) + b"abcd") + delimited(3, b"x")) + entry(KEY + VALUE),
    "a group with a field 0": group(9, tag(0, VARINT) + ONE) + entry(KEY + VALUE),
    "groups of depth 100 beside the map": groups(100) + entry(KEY + VALUE),
    "groups of depth 96 beside the values": ints(groups(96) + delimited(1, ONE)),
    "a name with a zero byte": entry(delimited(1, b"\0") + VALUE),
    "bytes that are no text": feature(delimited(1, delimited(1, b"\xff"))),
}
REFUSED = {
    "a tag in six bytes": varint(1 << 3 | DELIMITED, surplus=5) + b"\0",
    "a length in six bytes": tag(1, DELIMITED) + varint(0, surplus=5),
    "a value in eleven bytes": ints(delimited(1, b"\xff" * 10 + b"\0")),
    "a tag of 33 bits": b"\x88\x80\x80\x80\x10" + ONE,
    "the field number 0": tag(0, VARINT) + ONE,
    "the wire type 6": tag(1, 6) + ONE,
    "the wire type 7": tag(1, 7) + ONE,
    "a group that only ends": tag(9, END_GROUP),
    "a group that only begins": tag(9, GROUP),
    "a group that ends as another": tag(9, GROUP) + tag(8, END_GROUP),
    "groups of depth 101 beside the map": groups(101),
    "groups of depth 97 beside the values": ints(groups(97)),
    "a length of 2 GiB": tag(1, DELIMITED) + varint(2**31),
    "a length of 32 GiB": tag(1, DELIMITED) + varint(2**35 - 1),
    "a packed value that is cut": ints(delimited(1, ONE + b"\x80")),
    "floats of three bytes": feature(delimited(2, delimited(1, b"abc"))),
    "a name that is no text": entry(delimited(1, b"\xff") + VALUE),
    "a name that is a surrogate": entry(delimited(1, b"\xed\xa0\x80") + VALUE),
    "a name that is no text before one that is": entry(delimited(1, b"\xff") + KEY + VALUE),
    "values that only together are whole": entry(KEY + delimited(2, INTS[:3]) + delimited(2, INTS[3:])),
    "lists that only together are whole": feature(delimited(3, b"\x0a") + delimited(3, b"\x01\x05")),
    "a broken value that a later entry replaces": entry(KEY + delimited(2, INTS[:3])) + entry(KEY + VALUE),
    "a broken kind that a later one replaces": feature(delimited(2, delimited(1, b"abc")) + INTS),
    "a broken value in an entry that is dropped": entry(KEY + delimited(2, INTS[:3]) + tag(9, VARINT) + ONE),
}


@pytest.mark.parametrize("what", TAKEN)
def test_unusual_wire_is_read_as_protobuf_reads_it(what, tmp_path):
    assert parsed(TAKEN[what], Example) is not None
    check_against_protobuf(tmp_path, [TAKEN[what]], Example)
    check_against_protobuf(tmp_path, [TAKEN[what]], SequenceExample)


@pytest.mark.parametrize("what", REFUSED)
def test_wire_that_protobuf_refuses_is_damage_with_its_place(what, tmp_path):
    assert parsed(REFUSED[what], Example) is None
    path = tmp_path / "broken.tfrecord"
    records = [TAKEN["an entry without a value"], REFUSED[what]]
    write_shard(path, records)
    with pytest.raises(CorruptRecord, match=r"no tf\.train\.Example") as damage:
        list(ab.read(path, {"a": ab.Ragged("int64")}))
    assert (damage.value.file, damage.value.offset) == (str(path), starts_of(records)[1])
    assert damage.value.length == len(REFUSED[what]) + OVERHEAD


@pytest.mark.parametrize("message", PARTS)
def test_a_message_cut_anywhere_is_what_protobuf_makes_of_it(message, tmp_path):
    lists = delimited(2, delimited(1, KEY + delimited(2, delimited(1, INTS) + delimited(1, b""))))
    whole = feature(INTS) + delimited(9, b"unknown") + feature(FLOATS) + lists
    check_against_protobuf(tmp_path, [whole[:cut] for cut in range(len(whole) + 1)], message)


@pytest.mark.parametrize("depth", range(94, 102))
@pytest.mark.parametrize("levels", range(6))
def test_groups_nest_as_deep_in_a_list_as_protobuf_lets_them(depth, levels, tmp_path):
    numbers = (2, 1, 2, 1, 3)[:levels]
    record = groups(depth)
    for number in reversed(numbers):
        record = delimited(number, record)
    check_against_protobuf(tmp_path, [record], SequenceExample)


def several(compose):
    sound, damaged = wire.messages(compose, mutate=False), wire.messages(compose, mutate=True)
    return st.lists(sound | damaged, min_size=8, max_size=40)


@law(several(wire.example), examples=150, soak=20_000)
def test_an_example_holds_what_protobuf_finds_in_it(folder, records):
    check_against_protobuf(folder, records, Example)


@law(several(wire.sequence_example), examples=150, soak=20_000)
def test_a_sequence_example_holds_what_protobuf_finds_in_it(folder, records):
    check_against_protobuf(folder, records, SequenceExample)


@law(several(wire.example) | several(wire.sequence_example), examples=100, soak=5_000)
def test_damage_anywhere_counts_once_a_feature_cannot_be_had(folder, records):
    refused = [record for record in records if parsed(record, Example) is None]
    assert read_back(folder, refused, {"nowhere": ab.Numbers()}) == [None] * len(refused)


@law(several(wire.example) | several(wire.sequence_example), examples=50, soak=5_000)
def test_a_survey_counts_the_records_that_protobuf_takes_for_neither(folder, records):
    refused = [record for record in records if all(parsed(record, message) is None for message in PARTS)]
    assert malformed(folder, records) == len(refused)
