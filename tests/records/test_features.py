import copy
import math
import pickle
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from anybatch.errors import BadFeature
from anybatch.records.dtypes import FLOATS, INTEGERS, NUMBERS
from anybatch.records.features import (
    Bytes,
    Image,
    Numbers,
    Padded,
    Ragged,
    Raw,
    Sequence,
    native_fields,
    resolve,
)

SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, max_side=4)


@st.composite
def number_features(draw):
    dtype, shape = draw(st.sampled_from(NUMBERS)), draw(SHAPES)
    given_shape = draw(st.sampled_from([(), shape]))
    default = draw(st.none() | hnp.arrays(dtype, given_shape))
    return Numbers(dtype, shape, default)


@st.composite
def bytes_features(draw):
    shape = draw(SHAPES)
    default = draw(st.none() | st.binary() | hnp.arrays(object, shape, elements=st.binary(max_size=4)))
    return Bytes(default, shape)


ragged_features = st.builds(Ragged, st.sampled_from([*NUMBERS, "bytes"]), key=st.none() | st.text())
plain_features = st.one_of(
    number_features(),
    bytes_features(),
    ragged_features,
    st.builds(Raw, st.sampled_from(NUMBERS), SHAPES),
)
steps = plain_features.filter(lambda feature: getattr(feature, "default", None) is None)
every_feature = plain_features | st.builds(Sequence, steps, st.booleans())


@given(every_feature)
def test_a_feature_survives_a_process_border(feature):
    for again in (pickle.loads(pickle.dumps(feature)), copy.deepcopy(feature)):
        assert again == feature
        assert hash(again) == hash(feature)
        assert again.native_field("x") == feature.native_field("x")


@given(every_feature)
def test_a_printed_feature_can_be_pasted(feature):
    assert eval(repr(feature), {**globals(), "nan": math.nan, "inf": math.inf}) == feature


@given(every_feature)
def test_a_feature_does_not_change(feature):
    for field in fields(feature):
        with pytest.raises(AttributeError):
            setattr(feature, field.name, None)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("float32", "float32"),
        ("f4", "float32"),
        (np.float32, "float32"),
        (np.dtype("float16"), "float16"),
        (float, "float64"),
        (int, "int64"),
        (bool, "bool"),
        (np.uint8, "uint8"),
        ("<i4", "int32"),
    ],
)
def test_a_dtype_may_be_written_in_any_usual_way(dtype, name):
    assert Numbers(dtype).dtype == Raw(dtype, ()).dtype == Ragged(dtype).dtype == name


@pytest.mark.parametrize("dtype", ["bytes", "string", bytes, str, np.dtype("S"), np.str_])
def test_a_ragged_feature_can_hold_bytes(dtype):
    assert Ragged(dtype) == Ragged("bytes")


@pytest.mark.parametrize(
    "dtype",
    [
        "flot32",
        ">f4",
        "complex64",
        "datetime64[s]",
        None,
        object,
        "S5",
        [("a", "f4")],
        np.zeros(3),
        7,
        "float128",
    ],
)
def test_an_unknown_dtype_is_refused_with_those_that_are_known(dtype):
    for make in (Numbers, Ragged, lambda dtype: Raw(dtype, ())):
        with pytest.raises(BadFeature, match="use one of float16, float32") as refused:
            make(dtype)
        assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize("make", [Numbers, lambda dtype: Raw(dtype, (3,))])
def test_numbers_of_dtype_bytes_are_refused_with_the_feature_that_reads_them(make):
    with pytest.raises(BadFeature, match="Bytes"):
        make("bytes")


@pytest.mark.parametrize(
    ("shape", "kept"),
    [((), ()), (3, (3,)), ([2, 3], (2, 3)), (np.array([2, 3]), (2, 3)), (np.int32(4), (4,)), (0, (0,))],
)
def test_a_shape_is_kept_as_a_tuple(shape, kept):
    assert Numbers(shape=shape).shape == Raw("uint8", shape).shape == kept
    assert all(type(size) is int for size in Numbers(shape=shape).shape)


@pytest.mark.parametrize(
    "shape", [(-1,), (None, 3), (2, -3), None, "28x28", (1.5,), (True,), {}.get, (2**40, 2**40)]
)
@pytest.mark.parametrize("kind", [Numbers, Raw, Bytes, Padded])
def test_a_shape_that_is_not_known_is_refused(kind, shape):
    with pytest.raises(BadFeature, match="shape"):
        kind(**({} if kind is Bytes else {"dtype": "uint8"}), shape=shape)


def test_a_shape_that_holds_nothing_has_no_bytes_and_no_padding():
    for make in (lambda: Bytes(shape=(2, 0)), lambda: Padded("int64", (0,))):
        with pytest.raises(BadFeature, match="holds 0 values"):
            make()


@given(number_features().filter(lambda feature: feature.default is not None))
def test_a_default_reaches_the_decoder_as_one_whole_item(feature):
    item = feature.native_field("x")[5]
    values = np.frombuffer(item, feature.dtype).reshape(feature.shape)
    expected = np.broadcast_to(np.asarray(feature.default, feature.dtype), feature.shape)
    np.testing.assert_array_equal(values, expected)


@given(st.sampled_from(FLOATS), st.data())
def test_a_default_of_floats_keeps_every_bit(dtype, data):
    value = data.draw(hnp.from_dtype(np.dtype(dtype), allow_nan=False))
    assert Numbers(dtype, default=value).native_field("x")[5] == np.asarray(value).tobytes()


@given(bytes_features().filter(lambda feature: feature.default is not None))
def test_default_bytes_reach_the_decoder_unchanged(feature):
    item = feature.native_field("x")[5]
    assert len(item) == math.prod(feature.shape)
    assert all(type(value) is bytes for value in item)
    if isinstance(feature.default, bytes):
        assert set(item) == {feature.default}


def test_zero_bytes_at_the_end_of_a_default_are_kept():
    assert Bytes(default=b"a\0").native_field("x")[5] == [b"a\0"]
    assert Bytes(default=[b"a\0", b"\0"], shape=2).native_field("x")[5] == [b"a\0", b"\0"]


def test_a_default_of_not_a_number_is_equal_to_itself():
    assert Numbers(default=math.nan) == Numbers(default=float("nan"))
    assert Numbers(default=0) == Numbers(default=0.0)
    assert Numbers(default=0) != Numbers(default=-0.0)


def test_text_as_a_default_of_bytes_becomes_utf8():
    assert Bytes(default="ö").default == "ö".encode()


@pytest.mark.parametrize(
    ("dtype", "default"),
    [
        ("uint8", 256),
        ("uint8", -1),
        ("int64", 2**63),
        ("int64", 1.0),
        ("int64", True),
        ("float32", 1e300),
        ("float16", 1e6),
        ("float32", "1"),
        ("float32", b"1"),
        ("float32", True),
        ("bool", 2),
        ("bool", 0.0),
        ("float32", 1j),
        ("float32", [[1], [2, 3]]),
        ("float32", [None]),
    ],
)
def test_a_default_that_does_not_fit_the_dtype_is_refused(dtype, default):
    with pytest.raises(BadFeature, match=f"does not fit {dtype}"):
        Numbers(dtype, default=default)


@given(st.sampled_from(INTEGERS))
def test_a_default_may_be_any_integer_of_the_dtype(dtype):
    info = np.iinfo(dtype)
    for value in (info.min, info.max):
        assert Numbers(dtype, default=value).default == value
    for value in (info.min - 1, info.max + 1):
        with pytest.raises(BadFeature):
            Numbers(dtype, default=value)


def test_large_and_small_integers_in_one_default_stay_exact():
    largest = 2**64 - 1
    assert Numbers("uint64", (2,), [0, largest]).default == (0, largest)


@pytest.mark.parametrize(
    ("shape", "default"), [((), [1]), ((2,), [1, 2, 3]), ((2, 2), [1, 2, 3, 4]), ((2,), [[1, 2]])]
)
def test_a_default_that_does_not_fill_the_shape_is_refused(shape, default):
    with pytest.raises(BadFeature, match="does not fill"):
        Numbers("int64", shape, default)
    with pytest.raises(BadFeature, match="does not fill"):
        Bytes(np.asarray(default).astype(bytes), shape)


@pytest.mark.parametrize("default", [3, [b"a", 1], None, 1.5])
def test_a_default_of_bytes_must_be_bytes(default):
    if default is None:
        assert Bytes(default).default is None
    else:
        with pytest.raises(BadFeature, match="is not bytes"):
            Bytes(default)


def test_the_fields_of_the_native_schema_come_in_the_order_of_the_columns():
    features = {
        "image": Raw("uint8", (28, 28, 1)),
        "label": Numbers("int64"),
        "weight": Numbers("float32", (2,), default=1.5),
        "name": Bytes(default=b"?", shape=(2,)),
        "words": Ragged(bytes),
        "ids": Ragged("int32", key="token_ids"),
        "steps": Sequence(Numbers("float64", (3,))),
        "maybe": Sequence(Numbers("float64", (3,)), allow_missing=True),
        "frames": Sequence(Raw("uint8", (4,))),
        "tags": Sequence(Ragged("string", key="tag")),
        "padded": Padded("int64", (2,)),
    }
    assert native_fields(resolve(features)) == [
        ("image", "context", "raw", "uint8", 784, None, True),
        ("label", "context", "dense", "int64", 1, None, True),
        ("weight", "context", "dense", "float32", 2, np.array([1.5, 1.5], "<f4").tobytes(), False),
        ("name", "context", "dense", "bytes", 2, [b"?", b"?"], False),
        ("words", "context", "ragged", "bytes", 0, None, False),
        ("token_ids", "context", "ragged", "int32", 0, None, False),
        ("steps", "list", "dense", "float64", 3, None, True),
        ("maybe", "list", "dense", "float64", 3, None, False),
        ("frames", "list", "raw", "uint8", 4, None, True),
        ("tag", "list", "ragged", "bytes", 0, None, False),
        ("padded", "context", "ragged", "int64", 2, None, False),
    ]


@pytest.mark.parametrize("step", [Sequence(Numbers()), Padded("int64"), "int64", None, Numbers])
def test_a_sequence_holds_steps_and_no_further_sequences(step):
    with pytest.raises(BadFeature, match="each step can be Numbers, Raw, Bytes or Ragged"):
        Sequence(step)


def test_a_step_has_no_default_because_it_is_never_missing():
    with pytest.raises(BadFeature, match="allow_missing=True"):
        Sequence(Numbers(default=0))
    with pytest.raises(BadFeature, match="allow_missing=True"):
        Sequence(Bytes(default=b""))


@pytest.mark.parametrize(
    ("feature", "hint"),
    [
        ("float32", r"Numbers\('float32'\) reads 1 value"),
        (np.int64, r"Numbers\('int64'\)"),
        (np.dtype("uint8"), r"Numbers\('uint8'\)"),
        (bytes, r"Bytes\(\)"),
        (Numbers, r"write Numbers\(...\)"),
        (Ragged, r"write Ragged\(...\)"),
        (np.zeros((50, 50)), "it is of type ndarray"),
        ({"inner": Numbers()}, "it is of type dict"),
        (None, "it is None"),
        ("label", "it is 'label'"),
        (NamedTuple("FixedLenFeature", [("shape", tuple)])(()), "it is of type FixedLenFeature"),
    ],
)
def test_what_is_no_feature_is_refused_by_its_column_with_a_hint(feature, hint):
    with pytest.raises(BadFeature, match=hint) as refused:
        resolve({"x": feature})
    assert refused.value.feature == "x"
    assert "\n" not in str(refused.value)


def test_names_are_text():
    with pytest.raises(BadFeature, match="names are str"):
        resolve({b"x": Numbers()})
    with pytest.raises(BadFeature, match="names are str"):
        Ragged("int64", key=3)


def test_at_least_one_feature_is_named():
    with pytest.raises(BadFeature, match="holds 0 of them"):
        resolve({})


@pytest.mark.parametrize("features", [None, [Numbers()], Numbers(), "label", bytes])
def test_features_come_as_a_mapping(features):
    with pytest.raises(BadFeature, match="mapping from name to feature"):
        resolve(features)


def test_a_feature_of_tf_is_known_without_importing_tensorflow():
    class FixedLenFeature(NamedTuple):
        shape: Any
        dtype: Any
        default_value: Any = None

    assert resolve({"x": FixedLenFeature([2], "int64")}) == {"x": Numbers("int64", (2,))}


@pytest.mark.parametrize(
    ("make", "way_out"),
    [
        (lambda: Numbers("int64", (None,)), r"Ragged\(dtype\) reads lists"),
        (lambda: Raw("uint8", (-1,)), r"Bytes\(\) reads values of any length"),
        (lambda: Image(-1, 1), r"Bytes\(\) reads the files as they are"),
    ],
)
def test_a_size_that_is_not_known_is_refused_with_what_reads_such_values(make, way_out):
    with pytest.raises(BadFeature, match=way_out):
        make()
