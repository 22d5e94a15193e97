from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anybatch.records.assemble import assemble
from anybatch.records.columns import RaggedColumn, row
from anybatch.records.features import Bytes, Numbers, Padded, Ragged, Raw, Sequence

BYTE = st.integers(0, 127)
WORD = st.binary(max_size=3)


def offsets_of(parts):
    return np.array([0, *accumulate(map(len, parts))], dtype=np.int64)


def flat(lists):
    return [value for part in lists for value in part]


def short(values):
    return st.lists(values, max_size=3)


def pairs(values):
    return st.lists(values, min_size=2, max_size=2)


def plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.to_list() if hasattr(value, "to_list") else value


def innermost(column):
    return column if isinstance(column, np.ndarray) else innermost(column.values)


def padded_by_hand(rows, fill):
    longest = max(map(len, rows), default=0)
    return [part + [fill] * (longest - len(part)) for part in rows]


def native(feature, rows):
    """Return rows as the decoder would: buffers of values and offsets."""
    if isinstance(feature, Sequence):
        values, offsets = native(feature.feature, flat(rows))
        return values, [bytearray(offsets_of(rows)), *offsets]
    if isinstance(feature, Ragged | Padded):
        items = flat(rows)
        values, offsets = native(Bytes() if feature.dtype == "bytes" else Numbers(feature.dtype), items)
        return values, [bytearray(offsets_of(rows)), *offsets]
    if isinstance(feature, Bytes):
        values = flat(rows) if feature.shape else rows
        return bytearray(b"".join(values)), [bytearray(offsets_of(values))]
    return bytearray(np.array(rows, feature.dtype).tobytes()), []


FEATURES = [
    *(
        (Numbers(dtype), BYTE)
        for dtype in ("float16", "float32", "float64", "int8", "uint16", "int64", "uint64")
    ),
    (Numbers("bool"), st.booleans()),
    (Numbers("int32", (2,)), pairs(BYTE)),
    (Raw("uint8", (2, 2)), pairs(pairs(BYTE))),
    (Bytes(), WORD),
    (Bytes(shape=(2,)), pairs(WORD)),
    (Ragged("int16"), short(BYTE)),
    (Ragged("bool"), short(st.booleans())),
    (Ragged("bytes"), short(WORD)),
    (Sequence(Numbers("float32")), short(BYTE)),
    (Sequence(Numbers("float32", (2,))), short(pairs(BYTE))),
    (Sequence(Raw("uint8", (2,))), short(pairs(BYTE))),
    (Sequence(Bytes()), short(WORD)),
    (Sequence(Bytes(shape=(2,))), short(pairs(WORD))),
    (Sequence(Ragged("int64")), short(short(BYTE))),
    (Sequence(Ragged("bytes")), short(short(WORD))),
]
decoded = st.one_of(*(st.tuples(st.just(feature), st.lists(rows, max_size=5)) for feature, rows in FEATURES))


@given(decoded, st.integers(-6, 6), st.integers(-6, 6))
def test_an_assembled_column_holds_the_rows_and_so_do_its_slices(case, start, stop):
    feature, rows = case
    column = assemble(feature, len(rows), native(feature, rows))
    assert len(column) == len(rows)
    for part, expected in ((column, rows), (column[start:stop], rows[start:stop])):
        assert plain(part) == expected
    assert [plain(row(column, at)) for at in range(len(rows))] == rows


@given(decoded)
def test_assembling_copies_nothing(case):
    feature, rows = case
    values, offsets = native(feature, rows)
    column = assemble(feature, len(rows), (values, offsets))
    held = innermost(column)
    assert held.size == 0 or np.shares_memory(held, np.frombuffer(values, np.uint8))
    if not isinstance(column, np.ndarray):
        assert np.shares_memory(column.offsets, np.frombuffer(offsets[0], np.uint8))


@pytest.mark.parametrize(
    ("feature", "kind", "dtype"),
    [
        (Numbers("float32"), np.float32, None),
        (Numbers("bool"), np.bool_, None),
        (Numbers("int64", (2,)), np.ndarray, "int64"),
        (Raw("uint8", (3,)), np.ndarray, "uint8"),
        (Bytes(), bytes, None),
        (Bytes(shape=(2,)), np.ndarray, object),
        (Ragged("int32"), np.ndarray, "int32"),
        (Ragged("bytes"), np.ndarray, object),
        (Sequence(Numbers("float32", (2,))), np.ndarray, "float32"),
        (Sequence(Bytes(shape=(2,))), np.ndarray, object),
        (Sequence(Ragged("int64")), RaggedColumn, None),
    ],
)
def test_one_record_has_arrays_scalars_and_bytes(feature, kind, dtype):
    sample = b"a" if isinstance(feature, Bytes) else 1
    rows = (
        [[]]
        if isinstance(feature, Ragged | Sequence)
        else np.full((1, *feature.shape), sample, object).tolist()
    )
    value = row(assemble(feature, 1, native(feature, rows)), 0)
    assert isinstance(value, kind)
    assert dtype is None or value.dtype == dtype


@pytest.mark.parametrize("step", [Numbers("float32", (2,)), Bytes(shape=(2,)), Raw("uint8", (2,))])
def test_a_record_without_steps_still_has_their_shape(step):
    assert row(assemble(Sequence(step), 1, native(Sequence(step), [[]])), 0).shape == (0, 2)


def test_a_shape_that_holds_nothing_still_has_its_rows():
    assert assemble(Numbers("float32", (0, 3)), 4, (b"", [])).shape == (4, 0, 3)
    steps = assemble(Sequence(Numbers("float32", (0,))), 2, (b"", [offsets_of([[1, 2], [3]]).tobytes()]))
    assert steps.values.shape == (3, 0)


@given(st.lists(short(pairs(BYTE)), max_size=5))
def test_padded_items_reach_the_longest_of_the_batch(rows):
    feature = Padded("int64", (2,), default=9)
    padded = assemble(feature, len(rows), native(feature, [flat(items) for items in rows]))
    longest = max(map(len, rows), default=0)
    assert padded.shape == (len(rows), longest, 2)
    assert padded.tolist() == padded_by_hand(rows, [9, 9])
    assert padded.size == 0 or padded.ctypes.data % 64 == 0


@given(st.lists(short(pairs(WORD)), max_size=5))
def test_padded_bytes_reach_the_longest_of_the_batch(rows):
    feature = Padded("bytes", (2,), default=b"-")
    padded = assemble(feature, len(rows), native(feature, [flat(items) for items in rows]))
    assert padded.tolist() == padded_by_hand(rows, [b"-", b"-"])
