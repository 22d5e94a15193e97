"""Every batch is dealt out to the workers whole, whoever they are and however many go on from a state."""

import warnings
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

import anybatch as ab
from anybatch.train.slices import Slice, slice_of
from tests.shard_files import flipped, records_in, starts_of

ROWS = 50


def numbered():
    ids = np.arange(ROWS)
    return ab.from_arrays({"id": ids, "square": ids * ids}).shuffle(seed=3)


def lists():
    return ab.from_arrays({"id": np.arange(ROWS)}).map(
        lambda one: {**one, "list": np.ones(int(one["id"]) % 5 + 1)}
    )


PIPELINES = {
    "in order": lambda: ab.from_arrays({"id": np.arange(ROWS)}).batch(12),
    "shuffled": lambda: numbered().batch(12),
    "mapped": lambda: numbered().map(lambda one: {"id": one["id"]}).batch(12),
    "mapped behind": lambda: numbered().batch(12).map(lambda some: {"id": some["id"]}, batched=True),
    "taken": lambda: numbered().skip(3).take(40).batch(12),
    "without the rest": lambda: numbered().batch(12, drop_remainder=True),
    "cached": lambda: numbered().map(lambda one: {"id": one["id"]}).cache().shuffle(seed=2).batch(12),
    "no multiple": lambda: numbered().batch(7),
    "fewer than workers": lambda: numbered().batch(2),
    "filtered": lambda: numbered().filter(lambda one: one["id"] % 3 != 1).batch(12),
    "repeated": lambda: numbered().batch(12).repeat(2),
    "supervised": lambda: numbered().batch(12).as_supervised("id", "square"),
    "padded": lambda: lists().batch(12).as_supervised("id", "list"),
}
READ_ALONE = {
    "cached",
    "fewer than workers",
    "no multiple",
    "in order",
    "shuffled",
    "mapped",
    "mapped behind",
    "taken",
    "without the rest",
    "supervised",
}
READ_BY_ALL = {"filtered", "padded"}
"""More than rows of an array have to be looked at, by every worker."""

pytestmark = pytest.mark.filterwarnings("ignore:each of")


def ids(value):
    column = value[0] if isinstance(value, tuple) else value["id"]
    return np.asarray(column).tolist()


def opened(stream, workers, most, epoch=0):
    return [slice_of(stream, rank, workers).opened(stream, most, epoch=epoch) for rank in range(workers)]


def next_batch(parts):
    """Return the samples of one worker's next batch, and whether there was one."""
    found = []
    for value, last in parts:
        found += [] if value is None else ids(value)
        if last:
            return found, True
    return found, False


def batches(workers, count=None):
    """Return what the workers have of each batch; all of them end with the same one."""
    found = []
    while count is None or len(found) < count:
        shares, there = zip(*map(next_batch, workers), strict=True)
        assert len(set(there)) == 1
        if not there[0]:
            break
        found.append(shares)
    return found


def together(shares):
    return sorted(chain.from_iterable(shares))


def whole(stream, epoch=0):
    return [sorted(one) for (one,) in batches([stream.parts(1000, epoch=epoch)])]


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
@pytest.mark.parametrize("name", PIPELINES)
def test_the_workers_rows_of_every_batch_are_that_batch(name, workers):
    stream = PIPELINES[name]()
    for most in (1, 4, 1000):
        shares = batches(opened(stream, workers, most, epoch=2))
        assert [together(share) for share in shares] == whole(stream, epoch=2)
        assert all(max(map(len, share)) - min(map(len, share)) <= 1 for share in shares)


@pytest.mark.parametrize("name", PIPELINES)
def test_any_number_of_workers_goes_on_where_others_stopped(name):
    stream = PIPELINES[name]()
    expected = whole(stream, epoch=1)
    for before, after, done in ((2, 3, 2), (3, 1, 1), (1, 4, 3)):
        first = opened(stream, before, 5, epoch=1)
        found = batches(first, done)
        states = [worker.get_state() for worker in first]
        assert all(state == states[0] for state in states)
        going_on = opened(stream, after, 5)
        for worker in going_on:
            worker.set_state(states[0])
        found += batches(going_on)
        assert [together(share) for share in found] == expected


@pytest.mark.parametrize("name", PIPELINES)
def test_a_state_of_one_process_is_one_of_several_workers(name):
    stream = PIPELINES[name]()
    alone = stream.parts(5, epoch=1)
    batches([alone], 2)
    workers = opened(stream, 2, 5)
    for worker in workers:
        worker.set_state(alone.get_state())
    rest = [together(share) for share in batches(workers)]
    assert rest == whole(stream, epoch=1)[2:]
    going_on = stream.parts(5)
    workers = opened(stream, 2, 5, epoch=1)
    batches(workers, 2)
    going_on.set_state(workers[0].get_state())
    assert [sorted(one) for (one,) in batches([going_on])] == whole(stream, epoch=1)[2:]


@pytest.mark.parametrize("name", PIPELINES)
def test_workers_read_their_own_records_alone_where_that_can_be(name):
    stream = PIPELINES[name]()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = slice_of(stream, 0, 3)
    assert found.alone == (name in READ_ALONE)
    assert len(told) == (name in READ_BY_ALL)


def test_padding_is_that_of_the_whole_batch():
    stream = PIPELINES["padded"]()
    widths = [y.shape[1] for _, y in stream]
    for parts in opened(stream, 3, 2):
        found = [(value[1].shape[1] if value else None, last) for value, last in parts]
        batch = np.cumsum([False, *(last for _, last in found[:-1])])
        assert all(width in {None, widths[at]} for (width, _), at in zip(found, batch, strict=True))
        assert batch[-1] == len(widths) - 1


@pytest.mark.parametrize("size", [12, 7, 2])
def test_a_worker_reads_only_its_own_records(size):
    seen = []
    stream = numbered().map(lambda one: (seen.append(int(one["id"])), one)[1]).batch(size)
    found = [one for (share,) in batches(opened(stream, 3, 4)[1:2]) for one in share]
    assert sorted(set(seen)) == sorted(found)
    assert len(found) <= ROWS // 2


DAMAGED = (0, 3, 4, 5, 6, 7, 20, 33, 48, 49)
READ = {
    "in order": lambda stream: stream,
    "shuffled": lambda stream: stream.shuffle(seed=3),
    "mapped": lambda stream: stream.map(lambda one: {"id": one["id"]}),
    "cached": lambda stream: stream.cache().shuffle(seed=2),
}


@pytest.fixture
def damaged(tmp_path, monkeypatch):
    """A shard of which some records are damaged, which shows only when they are read."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (file,) = ab.write(tmp_path / "a.tfrecord", [{"id": number} for number in range(ROWS)])
    content, starts = Path(file).read_bytes(), starts_of(records_in(file))
    for number in DAMAGED:
        content = flipped(content, starts[number] + 13)
    Path(file).write_bytes(content)
    return ab.read(file, {"id": ab.Numbers("int64")}, on_corrupt="skip")


@pytest.mark.parametrize("size", [3, 7, 12])
@pytest.mark.parametrize("name", READ)
def test_a_damaged_record_is_missing_from_its_batch_and_shifts_no_other(damaged, name, size):
    stream = READ[name](damaged).batch(size)
    expected = whole(stream, epoch=1)
    assert sorted(chain.from_iterable(expected)) == sorted(set(range(ROWS)) - set(DAMAGED))
    for workers in (2, 3):
        shares = batches(opened(stream, workers, 4, epoch=1))
        assert [together(share) for share in shares if any(share)] == [one for one in expected if one]


@pytest.mark.parametrize("name", READ)
def test_workers_leave_out_the_batches_that_one_process_leaves_out(damaged, name):
    stream = READ[name](damaged).batch(7, drop_remainder=True)
    expected = whole(stream, epoch=1)
    assert 0 < len(expected) < ROWS // 7
    for workers in (2, 3):
        shares = batches(opened(stream, workers, 4, epoch=1))
        assert [together(share) for share in shares] == expected


def test_rows_are_dealt_out_evenly():
    assert [Slice(rank, 3).rows_of(8) for rank in range(3)] == [3, 3, 2]
