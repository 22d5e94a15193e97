"""Numbers come out in the dtype that was asked for, unchanged, or not at all."""

import numpy as np
import pytest
from hypothesis import strategies as st

import anybatch as ab
from anybatch.errors import FeatureError
from tests.records.contents import Contents, example, sequence_example
from tests.records.laws import law
from tests.shard_files import starts_of, write_shard

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NARROW = tuple(dtype for dtype in INTEGERS if dtype != "int64")
LOWEST, HIGHEST = -(2**63), 2**63 - 1


def range_of(dtype):
    """Return the smallest and the largest value that a dtype and an int64 list can both hold."""
    if dtype == "bool":
        return 0, 1
    return max(LOWEST, int(np.iinfo(dtype).min)), min(HIGHEST, int(np.iinfo(dtype).max))


def edges(dtype):
    low, high = range_of(dtype)
    return [
        edge
        for edge in (low - 1, low, low + 1, -1, 0, 1, high - 1, high, high + 1)
        if LOWEST <= edge <= HIGHEST
    ]


def stored(values):
    return np.array(values, "int64")


FORMS = {
    "one value": (ab.Numbers, lambda some: [[one] for one in some]),
    "three values": (lambda dtype: ab.Numbers(dtype, (3,)), lambda some: [[one] * 3 for one in some]),
    "any number of values": (ab.Ragged, lambda some: [some, [], some[:1]]),
}


def read_all(folder, feature, rows, stored=stored):
    """Return the values of all rows, one behind the other."""
    path = write_shard(
        folder / "x.tfrecord", [example({"x": stored(row)}).SerializeToString() for row in rows]
    )
    batches = [batch["x"] for batch in ab.read(path, {"x": feature}).batch(2)]
    return np.concatenate([getattr(batch, "values", batch).reshape(-1) for batch in batches])


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
@pytest.mark.parametrize("form", FORMS)
def test_integers_that_fit_come_out_as_they_are(dtype, form, tmp_path):
    feature_of, rows_of = FORMS[form]
    low, high = range_of(dtype)
    rows = rows_of([edge for edge in edges(dtype) if low <= edge <= high])
    values = read_all(tmp_path, feature_of(dtype), rows)
    assert values.dtype == dtype
    assert values.tolist() == [one for row in rows for one in row]


OUTSIDE = [
    (dtype, value)
    for dtype in [*NARROW, "bool"]
    for value in sorted({*edges(dtype), LOWEST, HIGHEST})
    if not range_of(dtype)[0] <= value <= range_of(dtype)[1]
]


@pytest.mark.parametrize(("dtype", "value"), OUTSIDE)
@pytest.mark.parametrize("form", FORMS)
def test_an_integer_that_does_not_fit_is_an_error_with_its_value(dtype, value, form, tmp_path):
    feature_of, rows_of = FORMS[form]
    rows = rows_of([1, value])
    records = [example({"x": stored(row)}).SerializeToString() for row in rows]
    path = write_shard(tmp_path / "x.tfrecord", records)
    with pytest.raises(FeatureError, match=f"holds the value {value}, which is no {dtype}") as refused:
        list(ab.read(path, {"x": feature_of(dtype)}))
    at = next(number for number, row in enumerate(rows) if value in row)
    assert (refused.value.feature, refused.value.file) == ("x", path)
    assert refused.value.offset == starts_of(records)[at]


@law(
    st.sampled_from([*INTEGERS, "bool"]),
    st.lists(st.integers(LOWEST, HIGHEST) | st.integers(-300, 300), max_size=5),
    examples=150,
    soak=10_000,
)
def test_integers_fit_or_are_refused(folder, dtype, values):
    low, high = range_of(dtype)
    outside = [value for value in values if not low <= value <= high]
    if outside:
        # the first one is named
        with pytest.raises(FeatureError, match=f"the value {outside[0]}, which is no {dtype}"):
            read_all(folder, ab.Ragged(dtype), [values])
    else:
        assert read_all(folder, ab.Ragged(dtype), [values]).tolist() == values


def test_a_step_that_does_not_fit_is_an_error_with_its_number(tmp_path):
    message = sequence_example({}, {"x": [stored([1]), stored([300])]})
    path = write_shard(tmp_path / "x.tfrecord", [message.SerializeToString()])
    with pytest.raises(FeatureError, match="step 1: holds the value 300, which is no uint8"):
        list(ab.read(path, {"x": ab.Sequence(ab.Numbers("uint8"))}))


def bits(values):
    return values.view(f"u{values.itemsize}").tolist()


def float_bits(bit_patterns):
    return np.array(bit_patterns, "<u4").view("<f4")


bit_patterns = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=8)


@law(bit_patterns, examples=100, soak=20_000)
def test_float32_is_taken_bit_by_bit(folder, patterns):
    assert bits(read_all(folder, ab.Ragged("float32"), [patterns], float_bits)) == patterns


@law(bit_patterns, examples=100, soak=20_000)
def test_float64_holds_every_float32_exactly(folder, patterns):
    wide = read_all(folder, ab.Ragged("float64"), [patterns], float_bits)
    assert bits(wide) == bits(float_bits(patterns).astype("float64"))


@law(
    bit_patterns
    | st.lists(st.floats(-70_000, 70_000, width=32).map(lambda one: int(np.float32(one).view("u4")))),
    examples=200,
    soak=50_000,
)
def test_float16_is_the_nearest_or_is_refused(folder, patterns):
    floats = float_bits(patterns)
    with np.errstate(over="ignore"):
        nearest = floats.astype("float16")
    lost = floats[np.isinf(nearest) & np.isfinite(floats)]
    if lost.size:
        with pytest.raises(FeatureError, match="which is no float16") as refused:
            read_all(folder, ab.Ragged("float16"), [patterns], float_bits)
        assert np.float32(refused.value.problem.split()[3].rstrip(",")) == lost[0]
        return
    halves = read_all(folder, ab.Ragged("float16"), [patterns], float_bits)
    # of a NaN's payload ten bits are left, of which NumPy keeps one that others set
    assert np.isnan(halves).tolist() == np.isnan(floats).tolist()
    assert bits(halves[~np.isnan(halves)]) == bits(nearest[~np.isnan(nearest)])


@pytest.mark.parametrize("value", [65504, -65504, 65519.996, np.inf, -np.inf])
def test_the_largest_float16_and_infinities_fit(value, tmp_path):
    with np.errstate(over="ignore"):
        expected = np.float16(value)
    assert read_all(tmp_path, ab.Numbers("float16"), [[value]], lambda row: np.array(row, "<f4")) == [
        expected
    ]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", *INTEGERS, "bool"])
def test_a_default_has_the_dtype_that_was_asked_for(dtype, tmp_path):
    path = write_shard(tmp_path / "x.tfrecord", [example({}).SerializeToString()] * 2)
    (batch,) = ab.read(path, {"x": ab.Numbers(dtype, (2,), default=[0, 1])}).batch(2)
    assert batch["x"].dtype == dtype
    assert batch["x"].tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize("dtype", ["float16", "float64", *NARROW, "bool"])
def test_numbers_are_the_same_in_a_list_as_alone(dtype, tmp_path):
    values = Contents(3).values("int64", 6) % 2
    stored_as = values.astype("<f4") if dtype.startswith("float") else values
    message = sequence_example({"x": stored_as}, {"x": [stored_as[:3], stored_as[3:]]})
    path = write_shard(tmp_path / "x.tfrecord", [message.SerializeToString()])
    features = {"flat": ab.Ragged(dtype, key="x"), "x": ab.Sequence(ab.Numbers(dtype, (3,)))}
    (record,) = ab.read(path, features)
    assert record["x"].dtype == record["flat"].dtype == dtype
    assert record["x"].reshape(-1).tolist() == record["flat"].tolist() == values.tolist()
