"""What a stream hands over is the consumer's: contiguous, aligned, and nobody else's memory."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import anybatch as ab
from anybatch.errors import DoesNotFit
from anybatch.records import BytesColumn, RaggedColumn
from anybatch.stream.structure import leaves
from tests.stream.pipelines import from_files

ROWS = 20


def wide():
    return np.arange(ROWS * 5, dtype="f4").reshape(ROWS, 5)


def arrays_of(leaf):
    if isinstance(leaf, np.ndarray):
        return [leaf] if leaf.ndim and not leaf.dtype.hasobject else []
    if isinstance(leaf, BytesColumn | RaggedColumn):
        return [*arrays_of(leaf.values), leaf.offsets]
    return []


def check_is_the_consumers(element):
    for array in [array for leaf in leaves(element) for array in arrays_of(leaf)]:
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.ctypes.data % 64 == 0


STREAMS = {
    "batches in order": lambda: ab.from_arrays(wide()).batch(3),
    "batches behind a skip": lambda: ab.from_arrays(wide()).skip(1).batch(3),
    "shuffled": lambda: ab.from_arrays(wide()).shuffle(seed=1).batch(3),
    "records": lambda: ab.from_arrays(wide()),
    "records of a transposed array": lambda: ab.from_arrays(wide().T),
    "large records": lambda: ab.from_arrays(np.zeros((5, 5_001), "f4")),
    "records of rows that lie apart": lambda: ab.from_arrays(np.zeros((5, 16), "f4")),
    "records of images": lambda: ab.from_arrays({"x": np.zeros((5, 3, 3, 2), "u1"), "n": np.arange(5)}),
    "records of functions": lambda: ab.from_arrays(wide()).map(lambda row: row[::2]),
    "every second column": lambda: ab.from_arrays(wide()).map(lambda v: v[:, ::2], batched=True).batch(3),
    "records of every second column": lambda: ab.from_arrays(wide()).map(lambda v: v[:, ::2], batched=True),
    "cut behind a filter": lambda: ab.from_arrays(wide()).filter(lambda row: row[0] >= 0).batch(3),
    "behind batch": lambda: ab.from_arrays(wide()).batch(3).map(lambda v: v[:, ::2]),
    "read-only": lambda: ab.from_arrays(wide()).batch(3).map(lambda v: np.broadcast_to(v[:1], (3, 5))),
    "files": lambda: from_files().batch(3),
    "records of files": from_files,
    "cached": lambda: from_files().cache().batch(3),
    "lists behind batch": lambda: from_files().batch(3).map(lambda v: v["r"][1:]),
}


@pytest.mark.parametrize("name", STREAMS)
def test_elements_are_contiguous_aligned_and_writable(name):
    for element in STREAMS[name]():
        check_is_the_consumers(element)


@pytest.mark.parametrize("name", STREAMS)
def test_writing_into_an_element_changes_no_other(name):
    def values(stream, *, overwritten):
        seen = []
        for element in stream:
            found = [array for leaf in leaves(element) for array in arrays_of(leaf)]
            seen.append([array.tolist() for array in found])
            for array in found if overwritten else []:
                array[...] = 99
        return seen

    stream = STREAMS[name]()
    first = values(stream, overwritten=True)
    assert values(stream, overwritten=False) == first


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("behind", [False, True])
def test_a_function_that_works_in_place_leaves_the_users_arrays_alone(batched, behind):
    def grow(value):
        value *= 10
        return value

    mine = wide()
    stream = ab.from_arrays(mine)
    stream = stream.batch(4).map(grow) if behind else stream.map(grow, batched=batched).batch(4)
    for _ in range(2):
        assert np.array_equal(np.concatenate(list(stream)), wide() * 10)
    assert np.array_equal(mine, wide())


def test_a_predicate_that_works_in_place_leaves_the_users_arrays_alone():
    mine = wide()
    list(ab.from_arrays(mine).filter(lambda row: row.fill(0) is None))
    assert np.array_equal(mine, wide())


def test_what_lies_right_already_is_not_copied():
    made = []

    def kept(batch):
        made.append(batch)
        return batch

    for batch in ab.from_arrays(wide()).batch(4).map(kept):
        assert any(batch is one for one in made)


def test_a_mapping_of_the_users_own_stays_one():
    class Named(dict):
        pass

    element = next(iter(ab.from_arrays(wide()).batch(4).map(lambda v: Named(x=v))))
    assert type(element) is Named


def test_a_batch_that_has_to_be_copied_is_counted_twice():
    def grown(batch):
        return np.zeros((len(batch), 100_001), "f4")[:, 1:]

    with pytest.raises(DoesNotFit):
        next(iter(ab.from_arrays(wide()).batch(4).map(grown).limit_memory("2MB")))


def test_copies_of_arrays_are_in_the_account():
    stream = ab.from_arrays(wide()).batch(4)
    list(stream)
    source = next(stage for stage in stream.stats() if stage["stage"].startswith("from_arrays"))
    assert source["peak_bytes"] == 4 * 5 * 4
    assert source["elements"] == ROWS


@pytest.mark.parametrize("end", [lambda stream: stream, lambda stream: stream.batch(7)])
def test_threads_that_share_an_iterator_get_every_element_once_and_in_order(end):
    shared = iter(end(ab.from_arrays(np.arange(3_000)).map(lambda one: one)))

    def taken(_):
        return [np.ravel(element).tolist() for element in shared]

    with ThreadPoolExecutor(8) as pool:
        shares = list(pool.map(taken, range(8)))
    for share in shares:
        assert share == sorted(share)
    assert sorted(one for share in shares for some in share for one in some) == list(range(3_000))
