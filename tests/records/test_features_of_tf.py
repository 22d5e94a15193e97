import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from anybatch.errors import BadFeature, FeatureError
from anybatch.records.assemble import assemble
from anybatch.records.features import Bytes, Numbers, Padded, Ragged, Raw, Sequence, native_fields, resolve

Fixed, Var, FixedSequence = tf.io.FixedLenFeature, tf.io.VarLenFeature, tf.io.FixedLenSequenceFeature
RaggedTf = tf.io.RaggedFeature


def resolved(feature):
    return resolve({"x": feature})["x"]


def example(values=None, kind="int64_list"):
    made = tf.train.Example()
    if values is not None:
        # of an empty list the kind is written too: present, with 0 values
        getattr(made.features.feature["x"], kind).SetInParent()
        getattr(made.features.feature["x"], kind).value.extend(values)
    return made.SerializeToString()


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (Fixed([], tf.float32), Numbers("float32")),
        (Fixed((2, 3), tf.int64), Numbers("int64", (2, 3))),
        (Fixed(2, "int64"), Numbers("int64", (2,))),
        (Fixed(tf.TensorShape([4]), np.int64), Numbers("int64", (4,))),
        (Fixed([], tf.int64, 7), Numbers("int64", default=7)),
        (Fixed([], tf.int64, [7]), Numbers("int64", default=7)),
        (Fixed([2, 2], tf.int64, [1, 2, 3, 4]), Numbers("int64", (2, 2), [[1, 2], [3, 4]])),
        (Fixed([2], tf.float32, 7), Numbers("float32", (2,), 7)),
        (Fixed([2], tf.int64, tf.constant([5, 6], tf.int64)), Numbers("int64", (2,), [5, 6])),
        (Fixed([], tf.string), Bytes()),
        (Fixed([2], tf.string), Bytes(shape=(2,))),
        (Fixed([], tf.string, "none"), Bytes(b"none")),
        (Fixed([], tf.string, tf.constant(b"a\0")), Bytes(b"a\0")),
        (Fixed([1], tf.string, b"a\0"), Bytes([b"a\0"], (1,))),
        (Var(tf.float32), Ragged("float32")),
        (Var(tf.string), Ragged("bytes")),
        (RaggedTf(tf.int64), Ragged("int64")),
        (RaggedTf(tf.string, value_key="words"), Ragged("bytes", key="words")),
        (FixedSequence([], tf.int64, allow_missing=True), Padded("int64")),
        (FixedSequence([2], tf.float32, True, -1), Padded("float32", (2,), -1)),
        (FixedSequence([2], tf.float32, True, [-1]), Padded("float32", (2,), -1)),
        (FixedSequence([], tf.string, True), Padded("bytes", (), b"")),
    ],
)
def test_a_feature_of_tf_means_ours(theirs, ours):
    assert resolved(theirs) == ours


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (FixedSequence([2], tf.int64), Sequence(Numbers("int64", (2,)))),
        (
            FixedSequence([2], tf.int64, allow_missing=True),
            Sequence(Numbers("int64", (2,)), allow_missing=True),
        ),
        (FixedSequence([], tf.string), Sequence(Bytes())),
        (Fixed([3], tf.float32), Sequence(Numbers("float32", (3,)))),
        (Var(tf.int64), Sequence(Ragged("int64"))),
        (RaggedTf(tf.string, value_key="words"), Sequence(Ragged("bytes", key="words"))),
    ],
)
def test_inside_a_sequence_a_feature_of_tf_means_each_step(theirs, ours):
    assert Sequence(theirs) == ours


def test_allow_missing_of_the_sequence_is_enough():
    assert Sequence(FixedSequence([], tf.int64), allow_missing=True).allow_missing


def test_the_column_has_the_name_and_the_record_the_value_key():
    features = resolve({"tokens": RaggedTf(tf.int64, value_key="ids")})
    assert list(features) == ["tokens"]
    assert native_fields(features) == [("ids", "context", "ragged", "int64", 0, None, False)]


@pytest.mark.parametrize("dtype", [tf.float16, tf.float64, tf.int32, tf.uint8, tf.uint64, tf.bool])
def test_a_dtype_of_tf_is_a_dtype(dtype):
    assert Numbers(dtype).dtype == Raw(dtype, ()).dtype == np.dtype(dtype.as_numpy_dtype).name


def test_a_string_of_tf_is_bytes_and_a_bfloat16_is_refused():
    assert Ragged(tf.string) == Ragged("bytes")
    with pytest.raises(BadFeature, match="use one of"):
        Numbers(tf.bfloat16)


@pytest.mark.parametrize(
    ("theirs", "hint"),
    [
        (tf.float32, r"Numbers\('float32'\) reads 1 value"),
        (tf.string, r"Bytes\(\) reads 1 value"),
        (tf.io.SparseFeature("i", "v", tf.float32, 10), r"Ragged\(dtype\) under the name 'v'"),
        (RaggedTf(tf.int64, partitions=[RaggedTf.RowSplits("s")]), r"1 partitions .* Ragged\('int64'\)"),
        (FixedSequence([], tf.int64), r"Sequence\(...\)"),
        (FixedSequence([0], tf.int64, True), "holds 0 values"),
        (FixedSequence([2], tf.int64, True, [1, 2]), "does not fill"),
        (Fixed([None], tf.int64), "Ragged"),
        (Fixed(tf.TensorShape(None), tf.int64), "no shape"),
        (Fixed(None, tf.int64), "no shape"),
        (Fixed([], tf.int64, 1.5), "does not fit int64"),
        (Fixed([2], tf.int64, [1, 2, 3]), "does not fill"),
        (Fixed([], tf.int64, b"a"), "does not fit int64"),
        (Fixed([], tf.string, 3), "not bytes"),
        (Fixed([], tf.complex64), "use one of"),
        (tf.constant([1, 2]), "of type EagerTensor"),
    ],
)
def test_what_cannot_be_taken_is_refused_by_its_column_with_a_way_out(theirs, hint):
    with pytest.raises(BadFeature, match=hint) as refused:
        resolved(theirs)
    assert refused.value.feature == "x"
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("theirs", [FixedSequence([], tf.int64, True, 7), Fixed([], tf.int64, 7)])
def test_a_step_of_tf_has_no_default_either(theirs):
    with pytest.raises(BadFeature, match="no step is ever missing"):
        Sequence(theirs)


@pytest.mark.parametrize(
    ("shape", "default"),
    [([], 7), ([], [7]), ([2], [5, 6]), ([2, 2], [1, 2, 3, 4]), ([2, 2], [[1, 2], [3, 4]]), ([1], 7)],
)
def test_a_default_fills_the_shape_as_tensorflow_fills_it(shape, default):
    theirs = Fixed(shape, tf.int64, default)
    item = resolved(theirs).native_field("x")[5]
    parsed = tf.io.parse_example([example()], {"x": theirs})["x"].numpy()[0]
    np.testing.assert_array_equal(np.frombuffer(item, "int64").reshape(shape), parsed)


def native_ragged(rows, *, of_bytes=False):
    """Return rows as the decoder would."""
    offsets = np.cumsum([0, *map(len, rows)]).tobytes()
    flat = [value for row in rows for value in row]
    if of_bytes:
        return b"".join(flat), [offsets, np.cumsum([0, *map(len, flat)]).tobytes()]
    return np.array(flat, "int64").tobytes(), [offsets]


@given(
    st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4), min_size=1, max_size=5),
    st.sampled_from([(), (1,), (2,), (1, 3)]),
    st.none() | st.integers(-9, 9),
)
def test_padded_numbers_are_those_of_tensorflow(rows, shape, default):
    rows = [row * int(np.prod(shape)) for row in rows]
    theirs = FixedSequence(shape, tf.int64, True, default)
    ours = assemble(resolved(theirs), len(rows), native_ragged(rows))
    parsed = tf.io.parse_example([example(row) for row in rows], {"x": theirs})["x"].numpy()
    assert ours.dtype == parsed.dtype
    np.testing.assert_array_equal(ours, parsed)


@given(
    st.lists(st.lists(st.binary(max_size=3), max_size=3), min_size=1, max_size=4),
    st.none() | st.binary(),
)
def test_padded_bytes_are_those_of_tensorflow(rows, default):
    theirs = FixedSequence([], tf.string, True, default)
    ours = assemble(resolved(theirs), len(rows), native_ragged(rows, of_bytes=True))
    examples = [example(row, "bytes_list") for row in rows]
    assert ours.tolist() == tf.io.parse_example(examples, {"x": theirs})["x"].numpy().tolist()


def test_values_that_make_no_whole_items_are_an_error_for_both():
    theirs = FixedSequence([2], tf.int64, True)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.parse_example([example([1, 2]), example([1, 2, 3])], {"x": theirs})
    with pytest.raises(FeatureError, match=r"`x` holds 3 values in row 1 of the batch") as refused:
        assemble(resolved(theirs), 2, native_ragged([[1, 2], [1, 2, 3]]), name="x")
    assert refused.value.feature == "x"
