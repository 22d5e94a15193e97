"""A damaged record is left out, always the same one; it is named, and shifts no other."""

import re
from pathlib import Path

import numpy as np
import pytest

import anybatch as ab
from anybatch.errors import CorruptRecord, NotRecords, TooManyCorrupt
from anybatch.stream.iterator import StreamIterator
from anybatch.stream.run import Run
from tests.shard_files import OVERHEAD, PACK, flipped, starts_of, stream_of
from tests.stream.living_threads import check_no_thread_is_left
from tests.stream.stream_laws import (
    check_nothing_is_lost_or_repeated,
    check_restores_before_every_element,
    check_stopping_after_every_element_changes_nothing,
    check_threads_and_chunks_change_nothing,
    elements,
)

COUNT = 23
BAD = {4, 5, 11, 22}
# small records are checked while they are indexed, large ones when they are read
SIZES = pytest.mark.parametrize("size", [30, 40_000], ids=["known from the index", "found when read"])


def contents(size):
    return [b"%03d" % number + bytes(size) for number in range(COUNT)]


@pytest.fixture
def damaged(tmp_path):
    """Return a stream of `n`, the number that each record holds, with some records damaged."""

    def make(size, bad=BAD, **arguments):
        records = contents(size)
        starts = starts_of(records)
        content = stream_of(records)
        for number in bad:
            content = flipped(content, starts[number] + 12 + 5)
        path = tmp_path / f"{size}.tfrecord"
        path.write_bytes(content)
        return ab.read(str(path), bytes, **arguments).map(numbered, batched=True)

    return make


def numbered(column):
    return {"n": np.array([int(value[:3]) for value in column.to_list()])}


def numbers(stream):
    return [np.ravel(element["n"]).tolist() for element in stream]


def flat(stream):
    return [number for some in numbers(stream) for number in some]


@SIZES
def test_all_others_come_in_every_epoch_of_every_seed(damaged, size):
    stream = damaged(size, on_corrupt="skip")
    good = sorted(set(range(COUNT)) - BAD)
    assert flat(stream) == good
    for seed in range(3):
        for epoch in range(3):
            assert sorted(flat(stream.shuffle(seed=seed).epoch(epoch).batch(4))) == good


@SIZES
def test_the_ledger_names_every_damaged_record_once(damaged, size):
    stream = damaged(size, on_corrupt="skip")
    starts = starts_of(contents(size))
    for _ in range(2):
        flat(stream.shuffle(seed=1).batch(4))
    assert sorted((offset, length) for _, offset, length, _ in stream.corrupt) == [
        (starts[number], size + 3 + OVERHEAD) for number in sorted(BAD)
    ]
    assert all(reason.startswith("data checksum is") for *_, reason in stream.corrupt)
    assert all(file.endswith(f"{size}.tfrecord") for file, *_ in stream.corrupt)


@SIZES
def test_it_is_missing_from_its_own_batch_and_shifts_no_other(damaged, size):
    whole = numbers(damaged(size, bad=()).shuffle(seed=5).batch(4))
    left = numbers(damaged(size, on_corrupt="skip").shuffle(seed=5).batch(4))
    expected = [[number for number in batch if number not in BAD] for batch in whole]
    assert left == [batch for batch in expected if batch]


@SIZES
@pytest.mark.parametrize("bad", [{4, 5, 11, 22}, {7}, {4, 5, 6}, {8, 9, 10, 11}, {20, 21, 22}, {22}])
@pytest.mark.parametrize("rest", [True, False])
def test_batches_are_the_same_however_small_the_parts_they_are_read_in(damaged, size, bad, rest):
    stream = damaged(size, bad, on_corrupt="skip")
    for order in [stream, stream.shuffle(seed=5)]:
        batches = order.batch(4, drop_remainder=not rest)
        in_parts = StreamIterator(batches._stage, Run(chunk_bytes=1))
        assert numbers(in_parts) == numbers(batches)


@SIZES
def test_parts_say_where_each_batch_ends(damaged, size):
    stream = damaged(size, {7, 22}, on_corrupt="skip").shuffle(seed=5).batch(4)
    ends, held = [], []
    for part, last in stream.parts(1):
        held += [] if part is None else part["n"].tolist()
        if last:
            ends.append(held)
            held = []
    assert ends == numbers(stream)


@SIZES
def test_the_laws_of_restoring_hold_all_the_same(damaged, size):
    stream = damaged(size, on_corrupt="skip").shuffle(seed=2)
    for one in [stream, stream.batch(3), stream.filter(lambda record: record["n"] % 2 == 0).batch(2)]:
        check_restores_before_every_element(one)
        check_stopping_after_every_element_changes_nothing(one)
        check_threads_and_chunks_change_nothing(one)


@SIZES
@pytest.mark.parametrize("generations", [[[2]], [[0, 3]], [[3, 1, 2], [1]], [[1, 2], [2, 0, 1]]])
def test_the_number_of_workers_can_change_all_the_same(damaged, size, generations):
    stream = damaged(size, on_corrupt="skip").shuffle(seed=2)
    for end in [lambda one: one, lambda one: one.batch(2)]:
        check_nothing_is_lost_or_repeated(lambda *shard: end(stream.shard(*shard)), generations, 2)  # noqa: B023


@SIZES
def test_it_is_an_error_unless_told_otherwise(damaged, size):
    with pytest.raises(CorruptRecord) as failure:
        flat(damaged(size).shuffle(seed=1))
    assert failure.value.offset in [starts_of(contents(size))[number] for number in BAD]


@SIZES
@pytest.mark.parametrize(("most", "fits"), [(3, False), (4, True), (0.1, False), (0.2, True), (0, False)])
def test_too_many_are_an_error(damaged, size, most, fits):
    for order in [lambda stream: stream, lambda stream: stream.shuffle(seed=1)]:
        stream = order(damaged(size, on_corrupt="skip", max_corrupt=most))
        if fits:
            assert len(flat(stream)) == COUNT - len(BAD)
        else:
            with pytest.raises(TooManyCorrupt):
                flat(stream)


PIECES = {
    "all": lambda stream: stream,
    "the first": lambda stream: stream.take(12),
    "all but the first": lambda stream: stream.skip(12),
    "one shard": lambda stream: stream.shard(2, 0),
    "the other shard": lambda stream: stream.shard(2, 1),
    "some of one shard": lambda stream: stream.shard(2, 1).skip(2).take(7),
    "cached": lambda stream: stream.cache().take(12),
}


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("bad", [BAD, {8, 9, 10, 11}, {22}, set(range(12))])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_length_leaves_out_what_is_known_to_be_damaged(damaged, piece, bad, shuffled):
    stream = damaged(30, bad, on_corrupt="skip")
    some = PIECES[piece](stream.shuffle(seed=1) if shuffled else stream)
    for one in [some, some.batch(4), some.batch(4, drop_remainder=True), some.batch(3)]:
        assert len(one) == len(elements(one)), one
        # a cache is full now, and says the same
        assert len(one) == len(elements(one)), one


def test_a_length_leaves_out_what_is_damaged_in_compressed_files(tmp_path):
    records = contents(30)
    content = stream_of(records)
    for number in BAD:
        content = flipped(content, starts_of(records)[number] + 12 + 5)
    path = tmp_path / "packed.tfrecord.gz"
    path.write_bytes(PACK["GZIP"](content))
    stream = ab.read(str(path), bytes, on_corrupt="skip")
    for one in [stream, stream.batch(4), stream.batch(4, drop_remainder=True), stream.batch(2)]:
        assert len(one) == len(list(one)), one


@SIZES
def test_where_the_rest_is_dropped_every_batch_is_full(damaged, size):
    stream = damaged(size, on_corrupt="skip")
    for order in [stream, stream.shuffle(seed=1), stream.shuffle(seed=2).epoch(3)]:
        assert {len(batch) for batch in numbers(order.batch(4, drop_remainder=True))} == {4}


def test_no_thread_is_left_behind_damage_while_the_exception_is_kept(damaged):
    with pytest.raises(CorruptRecord) as kept:
        flat(damaged(40_000, {3}).shuffle(seed=1).batch(2))
    check_no_thread_is_left()
    assert kept.value.__traceback__ is not None


@pytest.mark.parametrize("change", [lambda stream: stream, lambda stream: stream.shuffle(seed=1).batch(2)])
@pytest.mark.parametrize("content", [b"a,b\r\n1,2\r\n" * 50, bytes(5_000), b"abc"])
def test_a_file_that_is_no_shard_is_not_called_damaged(content, change, tmp_path):
    file = tmp_path / "notes.csv"
    file.write_bytes(content)
    with pytest.raises(NotRecords, match=f"^`{re.escape(str(file))}` holds no TFRecords"):
        next(iter(change(ab.read(file, {"x": ab.Numbers()}))))


def test_a_shard_whose_first_record_is_damaged_is(tmp_path):
    (file,) = ab.write(tmp_path / "a.tfrecord", [{"x": [float(n)] * 9} for n in range(20)])
    content = bytearray(Path(file).read_bytes())
    content[20] ^= 1
    Path(file).write_bytes(content)
    with pytest.raises(CorruptRecord, match="is damaged at byte 0"):
        next(iter(ab.read(file, bytes)))
