"""Whatever users nest: mappings, tuples, bare arrays, scalars, bytes and lists behave alike."""

import pickle

import numpy as np
import pytest
from hypothesis import strategies as st

import anybatch as ab
from anybatch.records import BytesColumn, RaggedColumn
from anybatch.records.aligned import ALIGNMENT_BYTES
from anybatch.stream.structure import KindsDiffer, leaves
from tests.stream.pipelines import IN_FILES, from_files, not_a_third, record_of, seeds
from tests.stream.stream_laws import elements, law, opened, plain

ROWS = 11


def lists(lengths, values):
    return RaggedColumn(values, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))


def strings(values, shape=()):
    offsets = np.concatenate([[0], np.cumsum([len(value) for value in values])]).astype(np.int64)
    return BytesColumn(np.frombuffer(b"".join(values), np.uint8), offsets, shape)


NUMBERS = np.arange(ROWS)
LENGTHS = NUMBERS % 4
STRINGS = strings([b"%d\0" % number * (number % 3) for number in NUMBERS])
NESTED = {
    "a bare array of numbers": NUMBERS,
    "a bare array of rows": NUMBERS[:, None] * np.ones((1, 3), np.float32),
    "a bare array of images": np.arange(ROWS * 12, dtype=np.uint8).reshape(ROWS, 2, 2, 3),
    "booleans": NUMBERS % 2 == 0,
    "bytes": STRINGS,
    "bytes of a shape": strings([b"%d" % number for number in range(ROWS * 2)], (2,)),
    "lists": lists(LENGTHS, np.arange(LENGTHS.sum())),
    "lists of rows": lists(LENGTHS, np.ones((LENGTHS.sum(), 2), np.float32)),
    "lists of bytes": lists(LENGTHS, strings([b"%d" % number for number in range(LENGTHS.sum())])),
    "lists of lists": lists(
        LENGTHS, lists(np.arange(LENGTHS.sum()) % 3, np.arange((np.arange(LENGTHS.sum()) % 3).sum()))
    ),
    "a mapping": {"a": NUMBERS, "b": STRINGS},
    "a tuple": (NUMBERS, NUMBERS / 2),
    "a tuple of mappings": (
        {"a": NUMBERS, "b": lists(LENGTHS, np.arange(LENGTHS.sum()))},
        {"c": NUMBERS * 2},
    ),
    "a mapping of tuples of mappings": {"a": (NUMBERS, {"b": NUMBERS / 4}), "c": ((NUMBERS,), STRINGS)},
}
STRUCTURES = pytest.mark.parametrize("arrays", NESTED.values(), ids=NESTED)


def same(value):
    return value


def whole(value):
    return value


# ways to touch every record and change none
WAYS = {
    "as it is": lambda stream: stream,
    "record by record": lambda stream: stream.map(lambda *parts: parts if len(parts) > 1 else parts[0]),
    "columns at a time": lambda stream: stream.map(same, batched=True),
    "both": lambda stream: stream.map(same).map(same, batched=True).map(same),
    "at random": lambda stream: stream.random_map(lambda one, _: one),
    "kept by a filter": lambda stream: stream.filter(lambda *_: True),
    "skipping nothing": lambda stream: stream.filter(lambda *_: True).skip(0).take(ROWS),
    "mixed with nothing": lambda stream: ab.mix([stream, stream.take(0)]),
    "one behind the other": lambda stream: ab.concat([stream.take(4), stream.skip(4)]),
    "as one of one shard": lambda stream: stream.shard(1, 0),
    "ahead": lambda stream: stream.prefetch(2),
}
TOUCHED = pytest.mark.parametrize("touch", WAYS.values(), ids=WAYS)


@STRUCTURES
@TOUCHED
def test_what_touches_no_record_changes_none(arrays, touch):
    stream = ab.from_arrays(arrays)
    for size in [1, 4, ROWS]:
        expected = elements(stream.batch(size))
        assert elements(touch(stream).batch(size)) == expected
        assert elements(opened(touch(stream).batch(size), rows=3)) == expected
    assert elements(touch(stream)) == elements(stream)


@STRUCTURES
def test_one_whole_batch_is_what_was_put_in(arrays):
    (batch,) = ab.from_arrays(arrays).batch(ROWS)
    assert plain(batch) == plain(arrays)


@STRUCTURES
def test_shuffled_batches_hold_the_rows_of_their_records(arrays):
    stream = ab.from_arrays((NUMBERS, arrays)).shuffle(seed=3)
    expected = elements(ab.from_arrays(arrays))
    assert [expected[int(number)] for number, _ in stream] == [plain(value) for _, value in stream]


def test_records_of_files_are_what_was_written():
    assert elements(from_files()) == [plain(record_of(number)) for number in range(IN_FILES)]


def test_row_types_are_those_of_numpy_and_bytes():
    record = next(iter(from_files().skip(5)))
    assert {name: type(value) for name, value in record.items()} == {
        "n": np.int64,
        "x": np.ndarray,
        "r": np.ndarray,
        "b": bytes,
    }
    assert type(next(iter(ab.from_arrays(np.arange(3))))) is np.int64
    (raw,) = {type(value) for value in ab.read(from_files()._stage.record_set.shards[0].path, bytes)}
    assert raw is bytes


def test_lists_stay_lists_where_all_are_equally_long_by_chance():
    stream = ab.from_arrays({"r": lists([2] * 6, np.arange(12))})
    for one in [stream, stream.map(same), stream.filter(lambda _: True), stream.map(same, batched=True)]:
        assert all(isinstance(batch["r"], RaggedColumn) for batch in one.batch(4))


def test_rows_of_lists_are_plain_arrays_when_handed_over():
    rows = ab.from_arrays({"r": lists([2, 0, 1], np.arange(3))}).map(same)
    assert [type(row["r"]) for row in rows] == [np.ndarray] * 3


def test_what_a_function_makes_of_different_lengths_becomes_lists():
    stream = ab.from_arrays(np.arange(8)).map(np.arange)
    for one in [
        stream,
        stream.map(same, batched=True),
        stream.map(same, batched=True).filter(lambda _: True),
    ]:
        for rows in [1, 3, 256]:
            (batch,) = opened(one.batch(8), rows=rows)
            assert batch.to_list() == [list(range(n)) for n in range(8)]


def test_numbers_strings_and_nothing_that_a_function_returns_become_columns():
    stream = ab.from_arrays(np.arange(4)).map(
        lambda n: {"int": int(n), "float": n / 2, "text": f"é{n}", "flag": n > 1}
    )
    (batch,) = stream.batch(4)
    assert plain(batch) == {
        "int": plain(np.arange(4)),
        "float": plain(np.arange(4) / 2),
        "text": plain(strings([f"é{n}".encode() for n in range(4)])),
        "flag": plain(np.arange(4) > 1),
    }


class TestAsSupervised:
    stream = from_files()

    @pytest.mark.parametrize("early", [True, False])
    def test_names_lists_and_mappings_of_names_give_the_same_of_columns(self, early):
        def supervised(*names):
            batched = self.stream.batch(IN_FILES)
            return next(
                iter(
                    self.stream.as_supervised(*names).batch(IN_FILES)
                    if early
                    else batched.as_supervised(*names)
                )
            )

        (all_,) = self.stream.batch(IN_FILES)
        n, x = all_["n"], all_["x"]
        assert plain(supervised("x")) == plain(x)
        assert plain(supervised("x", "n")) == plain((x, n))
        assert plain(supervised("x", "n", "n")) == plain((x, n, n))
        assert plain(supervised("x", None, "n")) == plain((x, None, n))
        assert plain(supervised(["x", "n"], "n")) == plain(((x, n), n))
        assert plain(supervised({"a": "x"}, {"b": "n", "c": ["x"]})) == plain(({"a": x}, {"b": n, "c": (x,)}))

    def test_lists_are_padded_to_the_longest_of_the_batch(self):
        (batch,) = self.stream.batch(IN_FILES)
        ((x, y),) = self.stream.batch(IN_FILES).as_supervised("r", "n")
        assert plain(x) == plain(batch["r"].to_padded())
        assert len(x) == len(y) == IN_FILES

    def test_functions_behind_it_get_x_and_y_as_in_tf_data(self):
        pairs = (
            self.stream.as_supervised("n", "x").map(lambda n, x: (n + 1, x)).filter(lambda n, x: n % 2 == 0)
        )
        assert [int(n) for n, _ in pairs] == [n + 1 for n in range(IN_FILES) if n % 2]
        batches = self.stream.batch(4).as_supervised("n", "x").map(lambda n, x: (n + 1, x))
        assert [int(n) for batch, _ in batches for n in batch] == list(range(1, IN_FILES + 1))

    def test_a_function_of_one_argument_gets_the_tuple(self):
        assert [int(n) for n in self.stream.as_supervised("n", "x").map(lambda pair: pair[0])] == list(
            range(IN_FILES)
        )


# what batches of files can go through without somebody's function making new arrays
QUIET = {
    "in order": lambda stream: stream,
    "shuffled": lambda stream: stream.shuffle(seed=1),
    "filtered": lambda stream: stream.filter(not_a_third),
    "filtered and repeated": lambda stream: stream.filter(not_a_third).repeat(3),
    "repeated": lambda stream: stream.shuffle(seed=1).repeat(3),
    "mixed": lambda stream: ab.mix([stream, stream.shuffle(seed=2)]),
    "one behind the other": lambda stream: ab.concat([stream.skip(3), stream.shuffle(seed=2)]),
    "sharded": lambda stream: stream.filter(not_a_third).shard(2, 1),
    "record by record": lambda stream: stream.map(same),
    "resumed": lambda stream: stream.skip(3),
}


@pytest.mark.parametrize("touch", QUIET.values(), ids=QUIET)
@pytest.mark.parametrize("size", [1, 3, 5, 64])
def test_batches_are_contiguous_and_aligned(touch, size):
    for batch in touch(from_files()).batch(size):
        for array in arrays_of(batch):
            assert array.flags.c_contiguous
            assert not array.size or array.ctypes.data % ALIGNMENT_BYTES == 0


def arrays_of(batch):
    """Yield the memory of a batch: its arrays, and the values and offsets of what is no array."""
    for column in leaves(batch):
        if isinstance(column, np.ndarray):
            yield column
        else:
            yield column.offsets
            yield from arrays_of(column.values)


@pytest.mark.parametrize("touch", QUIET.values(), ids=QUIET)
@pytest.mark.parametrize("unbatched", [False, True])
def test_what_was_handed_over_is_never_written_again(touch, unbatched):
    """Keep all batches of many epochs, and compare them with copies that were made at once."""
    stream = touch(from_files()).repeat(20)
    kept, copies = [], []
    for element in stream if unbatched else stream.batch(3):
        kept.append(element)
        copies.append(plain(element))
    assert elements(kept) == copies


@law(seeds, st.integers(1, 6), examples=5, soak=200)
def test_batches_kept_while_others_are_let_go_stay_valid(seed, size):
    """What nobody holds is used again for later batches; what somebody holds is not."""
    stream = from_files().shuffle(seed=seed).batch(size).repeat(30)
    kept = [(batch, plain(batch)) for at, batch in enumerate(stream) if at % 7 == 0]
    assert all(plain(batch) == copy for batch, copy in kept)


def test_a_part_of_a_batch_keeps_the_whole_valid():
    firsts, copies = [], []
    for batch in from_files().shuffle(seed=1).batch(3).repeat(30):
        firsts.append(batch["x"][:1])
        copies.append(plain(batch["x"][:1]))
        del batch
    assert elements(firsts) == copies


def test_functions_may_change_what_they_are_given():
    def scale(record):
        record["x"] *= 2
        return record

    for stream in [from_files(), from_files().shuffle(seed=2)]:
        doubled = [plain(record["x"]) for record in stream.map(scale, batched=True)]
        assert doubled == [plain(record["x"] * 2) for record in stream]


class TestWhatDoesNotFitTogether:
    def test_functions_that_return_different_names(self):
        stream = ab.from_arrays(np.arange(4)).map(lambda n: {"a": n} if n < 2 else {"b": n})
        with pytest.raises(ValueError, match="one structure; these have the names 'a' and the names 'b'"):
            list(stream.batch(4))

    def test_functions_that_return_now_a_tuple_and_now_a_value(self):
        stream = ab.from_arrays(np.arange(4)).map(lambda n: n if n < 2 else (n, n))
        with pytest.raises(ValueError, match=r"a value of type int64 and a tuple of 2"):
            list(stream.batch(4))

    def test_streams_of_different_numbers(self):
        streams = [ab.from_arrays(np.arange(3)), ab.from_arrays(np.arange(3) / 2)]
        with pytest.raises(ValueError, match=r"float64 \(\) in stream 1 and int64 \(\) in stream 0"):
            list(ab.concat(streams).batch(4))

    def test_streams_of_different_names(self):
        streams = [ab.from_arrays({"a": np.arange(3)}), ab.from_arrays({"b": np.arange(3)})]
        with pytest.raises(ValueError, match="one structure"):
            list(ab.concat(streams).batch(4))

    def test_arrays_of_different_lengths(self):
        with pytest.raises(ValueError, match="equally many rows; these have 3, 4"):
            ab.from_arrays((np.arange(3), np.arange(4)))

    @pytest.mark.parametrize("arrays", [np.int64(3), {}, (), {"a": np.int64(3)}, None])
    def test_what_has_no_rows(self, arrays):
        with pytest.raises(ValueError, match="each needs rows"):
            ab.from_arrays(arrays)


def test_arrays_without_rows_are_a_stream_without_elements():
    stream = ab.from_arrays({"a": np.zeros((0, 3))})
    assert list(stream) == list(stream.batch(4)) == list(stream.shuffle().repeat(2)) == []
    assert len(stream) == len(stream.batch(4)) == 0


class TestOneTypePerColumn:
    """What a column is does not depend on which records fell into a batch."""

    def test_types_that_change_from_batch_to_batch_are_refused(self):
        batches = iter(ab.from_arrays(np.arange(4)).map(lambda v: int(v) if v < 2 else 1.5).batch(2))
        assert next(batches).dtype == np.int64
        with pytest.raises(KindsDiffer, match="int64 in earlier batches and float64 in this one"):
            next(batches)

    def test_types_that_change_within_a_batch_are_refused_by_the_name_of_the_column(self):
        stream = ab.from_arrays(np.arange(4)).map(lambda v: {"a": v, "b": (int(v) if v < 2 else 1.5,)})
        with pytest.raises(KindsDiffer, match=r"rows of column `b\.0` .* these have float64 and int64"):
            next(iter(stream.batch(4)))

    def test_types_that_change_between_columns_of_many_records_are_refused(self):
        stream = ab.from_arrays(np.arange(600)).map(
            lambda v: {"a": v.astype("f4" if v[0] < 256 else "f8")}, batched=True
        )
        with pytest.raises(KindsDiffer, match="column `a`"):
            list(stream.batch(256))

    def test_streams_of_different_types_are_told_apart(self):
        both = ab.concat([ab.from_arrays({"x": np.zeros(3)}), ab.from_arrays({"x": np.zeros(3, "f4")})])
        told = r"column `x` .* these have float32 \(\) in stream 1 and float64 \(\) in stream 0"
        with pytest.raises(KindsDiffer, match=told):
            list(both.batch(4))

    def test_records_of_streams_of_different_types_are_told_apart(self):
        streams = [ab.from_arrays(np.zeros(3, dtype)).map(lambda v: v) for dtype in ["f8", "f4"]]
        with pytest.raises(KindsDiffer, match="float32 in stream 1 and float64 in stream 0"):
            list(ab.concat(streams).batch(4))

    def test_empty_lists_have_the_type_of_the_others(self):
        stream = ab.from_arrays(np.arange(6)).map(lambda v: [1] * int(v % 3)).batch(3)
        assert [batch.values.dtype for batch in stream] == [np.int64] * 2

    def test_a_batch_of_empty_lists_alone_changes_no_type(self):
        stream = ab.from_arrays(np.arange(6)).map(lambda v: [1] * (int(v) // 3)).batch(3)
        assert [batch.values.tolist() if hasattr(batch, "values") else batch.tolist() for batch in stream]

    def test_text_may_be_of_any_length(self):
        stream = ab.from_arrays(np.arange(4)).map(lambda v: np.array(["x" * int(v + 1)]))
        assert len(list(stream.batch(2))) == 2
        assert len(list(stream.batch(4))) == 1

    def test_the_error_survives_pickling(self):
        told = KindsDiffer("x", ("f4", "f8")).in_streams([1, 0])
        assert str(pickle.loads(pickle.dumps(told))) == str(told)
