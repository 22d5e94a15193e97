"""A shuffle in windows, where records come in order only: its order is that of the seed and the epoch."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

import anybatch as ab
from anybatch.errors import DoesNotFit, WindowDoesNotFit
from anybatch.stream.iterator import StreamIterator
from anybatch.stream.row_sizes import row_sizes
from anybatch.stream.run import Run
from anybatch.stream.structure import Loose, as_columns, records
from tests.stream.pipelines import FEATURES, doubled, from_files, from_memory, not_a_third, record_of, seeds
from tests.stream.stream_laws import (
    check_restores_before_every_element,
    check_stopping_after_every_element_changes_nothing,
    check_threads_and_chunks_change_nothing,
    elements,
    law,
    numbers,
)


def lists_of_their_own(record):
    """Return lists that no feature declares: equally long by chance here and there, and empty at first."""
    n = int(record["n"])
    return {"n": record["n"], "own": np.arange(max(0, n // 9 % 3), dtype=np.int64)}


IN_ORDER_ONLY = {
    "filtered": lambda: from_memory(120).filter(not_a_third),
    "filtered and mapped": lambda: from_memory(110).filter(not_a_third).map(doubled),
    "lists": lambda: from_memory(100).filter(not_a_third).map(lists_of_their_own),
    "compressed": lambda: from_files("GZIP", (20, 7, 40)),
    "repeated": lambda: from_memory(30).shuffle(seed=2).repeat(4),
    "mixed": lambda: ab.mix([from_memory(60), from_memory(50).map(doubled)], [1, 2]),
    "concatenated": lambda: ab.concat([from_memory(60), from_memory(50).map(doubled)]),
}
KINDS = pytest.mark.parametrize("kind", IN_ORDER_ONLY)


@KINDS
@pytest.mark.parametrize("window", [300, 1500])
def test_neither_limits_nor_threads_nor_chunks_change_the_order(kind, window):
    stream = IN_ORDER_ONLY[kind]().shuffle(seed=5, window=window).batch(7)
    expected = elements(stream)
    for limit in ["300KB", "3MB", "2GiB"]:
        assert elements(stream.limit_memory(limit)) == expected, limit
    for chunk_bytes in [1, 500]:
        iterator = StreamIterator(stream._stage, Run(threads=3))
        iterator._run = replace(iterator._run, chunk_bytes=chunk_bytes)
        assert elements(iterator) == expected, chunk_bytes
    check_threads_and_chunks_change_nothing(stream)


@KINDS
def test_stopping_anywhere_changes_nothing(kind):
    stream = IN_ORDER_ONLY[kind]().take(30).shuffle(seed=5, window=500)
    for one in [stream, stream.batch(4)]:
        check_restores_before_every_element(one)
        check_stopping_after_every_element_changes_nothing(one)


@law(st.integers(0, 200), seeds, st.integers(1, 5000), st.integers(1, 9), examples=20, soak=1000)
def test_every_record_comes_once_and_no_further_than_its_window(size, seed, window, batch):
    stream = from_memory(size).filter(lambda _: True).shuffle(seed=seed, window=window)
    found = numbers(stream.batch(batch))
    assert sorted(found) == list(range(size))
    # a number, two floats, and the place of an array that might be a list
    in_window = max(1, window // 24)
    assert [one // in_window for one in found] == [at // in_window for at in range(size)]


def test_a_limit_that_leaves_no_room_for_a_window_is_refused_and_the_one_it_names_will_do():
    stream = from_memory(100_000).filter(not_a_third).shuffle(seed=5, window="1MiB").batch(64).prefetch()
    with pytest.raises(WindowDoesNotFit, match="a smaller window") as refusal:
        next(iter(stream.limit_memory("1MiB")))
    assert refusal.value.enough <= 4 << 20
    assert elements(stream.limit_memory(refusal.value.enough)) == elements(stream)


def test_the_window_that_is_recommended_fits_into_the_limit_that_is_the_default():
    stream = from_memory(100).filter(not_a_third).shuffle(seed=5, window="256MiB")
    longest = stream.map(doubled).batch(8).as_supervised("x", "n").map(lambda x, y: (x, y)).prefetch()
    assert len(list(longest)) == 9
    assert "256 MiB" not in stream.batch(8).limit_memory("16MiB").explain().splitlines()[-1]


def test_a_record_larger_than_the_window_comes_alone_if_it_fits_at_all():
    large = ab.from_arrays(np.zeros((3, 1 << 20), np.uint8)).filter(lambda _: True)
    stream = large.shuffle(seed=1, window="1KiB")
    assert sum(1 for _ in stream) == 3
    with pytest.raises(DoesNotFit):
        list(stream.limit_memory("300KB"))


def test_a_window_holds_no_more_than_it_is_promised():
    stream = from_memory(60_000).filter(lambda _: True).shuffle(seed=1, window="512KiB").batch(50)
    limited = stream.limit_memory("2MiB")
    for _ in limited:
        pass
    window = next(stage for stage in limited.stats() if stage["stage"].startswith("shuffle"))
    assert 400 << 10 < window["peak_bytes"] <= 512 << 10 <= window["bound_bytes"]


def test_a_record_is_as_large_loose_as_in_columns():
    loose = Loose(
        [record_of(number) | {"u": f"t{number}", "t": np.array([b"ab", b"c"], object)} for number in range(9)]
    )
    assert row_sizes(as_columns(loose)).tolist() == row_sizes(loose).tolist()
    read = next(iter(ab.read(from_files()._stage.record_set.shards[0].path, FEATURES).batch(5)))
    assert row_sizes(read).tolist() == row_sizes(Loose(records(read))).tolist()
