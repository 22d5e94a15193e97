import copy
import pickle
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anybatch.records.columns import BytesColumn, RaggedColumn, row, take_rows

NUMBERS = st.lists(st.integers(-100, 100), max_size=5)
WORDS = st.lists(st.binary(max_size=4), max_size=4)
SLICES = st.builds(slice, *[st.none() | st.integers(-8, 8)] * 2, st.none() | st.integers(-3, 3).filter(bool))


def offsets_of(parts):
    return np.array([0, *accumulate(map(len, parts))], dtype=np.int64)


def flat(lists):
    return [value for part in lists for value in part]


def bytes_column(values, shape=()):
    return BytesColumn(np.frombuffer(b"".join(values), np.uint8), offsets_of(values), shape)


def ragged_numbers(rows):
    return RaggedColumn(np.array(flat(rows), dtype=np.int32), offsets_of(rows))


def ragged_words(rows):
    return RaggedColumn(bytes_column(flat(rows)), offsets_of(rows))


def ragged_ragged(rows):
    return RaggedColumn(ragged_numbers(flat(rows)), offsets_of(rows))


def ragged_ragged_words(rows):
    return RaggedColumn(ragged_words(flat(rows)), offsets_of(rows))


def ragged_pairs(rows):
    return RaggedColumn(np.array(flat(rows), dtype=np.int16).reshape(-1, 2), offsets_of(rows))


def ragged_pairs_of_words(rows):
    return RaggedColumn(bytes_column(flat(flat(rows)), (2,)), offsets_of(rows))


def pairs_of_words(rows):
    return bytes_column(flat(rows), (2,))


def pairs(values):
    return st.lists(values, min_size=2, max_size=2)


KINDS = [
    (bytes_column, st.binary(max_size=4)),
    (pairs_of_words, pairs(st.binary(max_size=4))),
    (ragged_numbers, NUMBERS),
    (ragged_words, WORDS),
    (ragged_ragged, st.lists(NUMBERS, max_size=3)),
    (ragged_ragged_words, st.lists(WORDS, max_size=3)),
    (ragged_pairs, st.lists(pairs(st.integers(-100, 100)), max_size=3)),
    (ragged_pairs_of_words, st.lists(pairs(st.binary(max_size=3)), max_size=3)),
]
columns = st.one_of(
    *(st.lists(rows, max_size=6).map(lambda rows, make=make: (make(rows), rows)) for make, rows in KINDS)
)


def plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.to_list() if isinstance(value, RaggedColumn) else value


@given(columns)
def test_a_column_gives_back_its_rows(case):
    column, rows = case
    assert len(column) == len(rows)
    assert column.to_list() == rows
    assert [plain(value) for value in column] == rows
    assert [plain(column[at]) for at in range(len(rows))] == rows
    assert [plain(column[at - len(rows)]) for at in range(len(rows))] == rows
    assert [plain(row(column, at)) for at in range(len(rows))] == rows


@given(columns, SLICES)
def test_a_slice_of_a_column_is_the_slice_of_its_rows(case, where):
    column, rows = case
    assert column[where].to_list() == rows[where]
    assert column[where] == type(column)(column[where].values, column[where].offsets, *_shape(column))


def _shape(column):
    return (column.shape,) if isinstance(column, BytesColumn) else ()


@given(columns, SLICES, SLICES)
def test_a_slice_of_a_slice_is_a_slice(case, first, second):
    column, rows = case
    assert column[first][second].to_list() == rows[first][second]


@given(columns, st.data())
def test_the_offsets_of_a_slice_belong_to_its_values(case, data):
    column, _ = case
    start = data.draw(st.integers(0, len(column)))
    part = column[start:]
    assert part.offsets[0] == 0
    assert part.offsets[-1] == len(part.values)
    assert part.offsets.dtype == np.int64
    assert (np.diff(part.offsets) >= 0).all()


def innermost(column):
    return column if isinstance(column, np.ndarray) else innermost(column.values)


@given(columns)
def test_a_slice_shares_the_memory(case):
    column, _ = case
    part = column[1:-1]
    if innermost(part).size:
        assert np.shares_memory(innermost(part), innermost(column))


@given(columns, st.data())
def test_taking_rows_copies_them_in_that_order(case, data):
    column, rows = case
    picked = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8)) if rows else []
    taken = take_rows(column[:], np.array(picked, dtype=np.int64))
    assert taken.to_list() == [rows[at] for at in picked]
    assert not np.shares_memory(innermost(taken), innermost(column))


@given(columns)
def test_a_column_is_equal_to_its_copies_and_to_no_other(case):
    column, rows = case
    assert column == column[:]
    assert column == take_rows(column, np.arange(len(rows)))
    for again in (pickle.loads(pickle.dumps(column)), copy.deepcopy(column)):
        assert again == column
    assert (column == column[1:]) == (rows == rows[1:])
    assert column != rows
    assert column != "column"


def test_columns_with_different_dtypes_or_shapes_are_different():
    one = np.array([0, 1])
    assert RaggedColumn(np.array([1], "int32"), one) != RaggedColumn(np.array([1], "int64"), one)
    assert bytes_column([b"a", b"b"]) != bytes_column([b"a", b"b"], (2,))
    assert RaggedColumn(np.array([97], "uint8"), one) != bytes_column([b"a"])


def test_a_column_has_no_hash_because_its_memory_can_change():
    with pytest.raises(TypeError):
        hash(bytes_column([b"a"]))
    with pytest.raises(TypeError):
        hash(ragged_numbers([[1]]))


def test_a_slice_takes_only_its_own_rows_to_another_process():
    column = bytes_column([b"x" * 100_000, b"small"])
    assert len(pickle.dumps(column[1:])) < 1000


def test_a_column_knows_its_bytes():
    assert bytes_column([b"one", b"two"]).nbytes == 6 + 3 * 8
    assert bytes_column([b"one", b"three"])[1:].nbytes == 5 + 2 * 8
    assert ragged_numbers([[1], [2, 3]]).nbytes == 3 * 4 + 3 * 8


def test_a_column_prints_on_one_line_what_it_holds():
    assert repr(bytes_column([b"one", b"two"])) == "BytesColumn(2 rows, 6 x uint8)"
    assert repr(ragged_numbers([[1], [2, 3]])) == "RaggedColumn(2 rows, 3 x int32)"
    assert repr(ragged_words([[b"a"]])) == "RaggedColumn(1 rows, BytesColumn(1 rows, 1 x uint8))"


@pytest.mark.parametrize("column", [bytes_column([b"a", b"b"]), ragged_numbers([[1], [2]])])
@pytest.mark.parametrize("at", [2, -3, 100])
def test_a_row_that_is_not_there_is_an_index_error(column, at):
    with pytest.raises(IndexError, match="2 rows"):
        column[at]
    with pytest.raises(IndexError, match="2 rows"):
        row(column, at)


def test_a_row_is_numbered_by_an_integer():
    with pytest.raises(TypeError):
        bytes_column([b"a"])["a"]
    assert bytes_column([b"a"])[np.int64(0)] == b"a"


@given(st.lists(st.binary(max_size=3), max_size=5))
def test_bytes_become_an_array_of_objects(values):
    array = np.asarray(bytes_column(values))
    assert array.dtype == object
    assert array.tolist() == values


def test_bytes_with_zeros_at_their_end_stay_whole():
    values = [b"a\0\0", b"\0"]
    assert bytes_column(values).to_list() == np.asarray(bytes_column(values)).tolist() == values
    assert ragged_words([values, []]).to_padded(b"\0").tolist() == [values, [b"\0", b"\0"]]


def test_an_array_of_bytes_objects_is_never_without_a_copy():
    with pytest.raises(ValueError, match="always a copy"):
        bytes_column([b"a"]).__array__(copy=False)


def test_a_ragged_column_does_not_become_an_array_by_accident():
    with pytest.raises(TypeError, match="to_padded"):
        np.asarray(ragged_numbers([[1], [2]]))


def padded_by_hand(rows, fill, length):
    return [part + [fill] * (length - len(part)) for part in rows]


@given(st.lists(NUMBERS, max_size=6), st.integers(-100, 100), st.integers(0, 3))
def test_padding_fills_every_row_up_to_the_longest(rows, fill, extra):
    longest = max(map(len, rows), default=0)
    for length, given_length in ((longest, None), (longest + extra, longest + extra)):
        padded = ragged_numbers(rows).to_padded(fill, length=given_length)
        assert padded.shape == (len(rows), length)
        assert padded.dtype == np.int32
        assert padded.tolist() == padded_by_hand(rows, fill, length)


@given(st.lists(WORDS, max_size=6))
def test_bytes_are_padded_with_empty_bytes(rows):
    padded = ragged_words(rows).to_padded()
    assert padded.dtype == object
    assert padded.tolist() == padded_by_hand(rows, b"", max(map(len, rows), default=0))


@given(st.lists(st.lists(NUMBERS, max_size=3), max_size=5))
def test_lists_in_lists_are_padded_in_both_directions(rows):
    padded = ragged_ragged(rows).to_padded(-1)
    widest = max(map(len, flat(rows)), default=0)
    inner = [[padded_by_hand([part], -1, widest)[0] for part in parts] for parts in rows]
    assert padded.tolist() == padded_by_hand(inner, [-1] * widest, max(map(len, rows), default=0))


@given(st.lists(st.lists(pairs(st.integers(-9, 9)), max_size=3), max_size=5))
def test_items_with_a_shape_are_padded_whole(rows):
    padded = ragged_pairs(rows).to_padded(7)
    assert padded.shape[2:] == (2,)
    assert padded.tolist() == padded_by_hand(rows, [7, 7], max(map(len, rows), default=0))


@given(st.lists(NUMBERS, max_size=6))
def test_padding_a_slice_is_padding_its_rows(rows):
    part = rows[1:4]
    assert ragged_numbers(rows)[1:4].to_padded().tolist() == padded_by_hand(
        part, 0, max(map(len, part), default=0)
    )


@given(st.lists(NUMBERS, max_size=6))
def test_padded_memory_is_aligned_for_the_frameworks(rows):
    padded = ragged_numbers(rows).to_padded()
    assert padded.size == 0 or padded.ctypes.data % 64 == 0
    assert padded.flags.c_contiguous
    assert padded.flags.writeable


@pytest.mark.parametrize("fill", [0.5, "0", b"", None, 2**40, [1, 2]])
def test_padding_that_does_not_fit_is_refused(fill):
    with pytest.raises(ValueError, match="cannot fill up lists of int32"):
        ragged_numbers([[1], [2, 3]]).to_padded(fill)


def test_padding_of_bytes_must_be_bytes():
    with pytest.raises(ValueError, match="cannot fill up lists of bytes"):
        ragged_words([[b"a"], []]).to_padded(7)


def test_a_length_that_would_cut_a_row_is_refused():
    with pytest.raises(ValueError, match="a row has 3 values, more than 2"):
        ragged_numbers([[1, 2, 3]]).to_padded(length=2)
