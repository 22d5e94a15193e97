"""Batches part by part: the same records, the same ends, the same places to go on from."""

import numpy as np
import pytest
from pipelines import IN_FILES, doubled, from_files, from_memory, noisy_columns, not_a_third, shards
from stream_laws import plain

import anybatch as ab
from anybatch.records import Padded, RaggedColumn, is_aligned
from anybatch.stream.split import even_parts
from anybatch.stream.structure import joined, leaves

FILES = from_files().shuffle(seed=3)
LENGTHS = np.array([3, 3, 3, 3, 5, 2, 4, 1, 2])


def counted(record):
    """Lists that are equally long in the first batch, by chance."""
    return {"x": np.arange(record["n"]), "y": record["n"]}


def nested(record):
    n = int(record["n"])
    return {"s": RaggedColumn(np.arange(n), np.array([0, n // 2, n])), "y": record["n"]}


STREAMS = {
    "in file order": from_files().batch(4),
    "shuffled": FILES.batch(5),
    "shorter than a batch": FILES.batch(100),
    "arrays": from_memory(11).shuffle(seed=1).batch(4),
    "whole batches only": FILES.batch(5, drop_remainder=True),
    "compressed": from_files("GZIP").batch(4),
    "records mapped": FILES.map(doubled).batch(4),
    "columns mapped before": FILES.random_map(noisy_columns, batched=True).batch(4),
    "columns mapped behind": FILES.batch(4).map(doubled, batched=True),
    "batches mapped": FILES.batch(4).map(doubled),
    "filtered": FILES.filter(not_a_third).batch(3),
    "sharded": FILES.shard(2, 1).batch(3),
    "named": FILES.batch(4).as_supervised("x", "n"),
    "padded": FILES.batch(4).as_supervised({"lists": "r"}, "n", "n"),
    "prefetched and limited": FILES.batch(4).as_supervised("x").prefetch(2).limit_memory("64MiB"),
    "some batches": FILES.batch(3).skip(1).take(3),
    "several epochs": FILES.batch(4).repeat(2),
    "an epoch": FILES.batch(4).epoch(7),
    "cached": from_memory(11).cache().shuffle(seed=1).batch(4),
    "some of cached batches": from_memory(23).batch(4).cache().skip(1).take(3),
    "cached batches": from_memory(11).batch(4).cache(),
    "mapped at random behind whole batches": FILES.batch(5, drop_remainder=True).random_map(
        noisy_columns, batched=True
    ),
    "mapped at random behind several epochs": FILES.repeat(2)
    .batch(5)
    .random_map(noisy_columns, batched=True),
    "lists that a function makes": ab.from_arrays({"n": LENGTHS})
    .map(counted)
    .batch(4)
    .as_supervised("x", "y"),
    "lists in lists": ab.from_arrays({"n": LENGTHS}).map(nested).batch(4).as_supervised("s", "y"),
    "padded by the reader": ab.read(shards(), {"r": Padded("int64"), "n": ab.Numbers("int64")}).batch(5),
}
MOST = [1, 2, 3, 1000]


@pytest.fixture(params=STREAMS)
def stream(request):
    return STREAMS[request.param]


def batches_of(parts):
    """Put the parts of each batch together."""
    held, together = [], []
    for value, last in parts:
        held += [] if value is None else [value]
        if last:
            together.append(plain(joined(held)))
            held = []
    assert not held
    return together


@pytest.mark.parametrize("most", MOST)
def test_parts_put_together_are_the_batches(stream, most):
    assert batches_of(stream.parts(most)) == [plain(batch) for batch in stream]


@pytest.mark.parametrize("most", MOST)
def test_parts_are_even_and_none_is_larger_than_asked(stream, most):
    wanted = [size for batch in stream for size in even_parts(len(next(leaves(batch))), most)]
    sizes = [len(next(leaves(value))) for value, _ in stream.parts(most) if value is not None]
    assert sizes == wanted


@pytest.mark.parametrize("name", [name for name in STREAMS if "mapped" not in name])
def test_frameworks_can_take_parts_as_they_lie(name):
    stream = STREAMS[name]
    for value, _ in stream.parts(2):
        for leaf in leaves(value):
            assert not isinstance(leaf, np.ndarray) or is_aligned(leaf)


def test_a_state_taken_between_batches_gives_the_same_rest(stream):
    whole = [plain(batch) for batch in stream]
    parts = stream.parts(2)
    for passed in range(len(whole)):
        state = parts.get_state()
        resumed = stream.parts(3)
        resumed.set_state(state)
        assert batches_of(resumed) == whole[passed:]
        elements = iter(stream)
        elements.set_state(state)
        assert [plain(batch) for batch in elements] == whole[passed:]
        next(last for _, last in parts if last)
    assert batches_of(parts) == []


def test_parts_of_an_epoch_are_those_of_that_epoch():
    shuffled = FILES.batch(4)
    assert batches_of(shuffled.parts(2, epoch=3)) == [plain(batch) for batch in shuffled.epoch(3)]


def test_records_that_are_in_no_batch_have_no_parts():
    with pytest.raises(ValueError, match="only a stream with batch"):
        FILES.parts(3)
    assert len(FILES) == IN_FILES


def test_lists_that_come_late_are_padded_and_nothing_comes_twice():
    def some_lists(columns):
        """Rows of one length in the first batch, of several in the next."""
        n = columns["n"]
        lists = RaggedColumn(np.arange(n.sum()), np.concatenate([[0], np.cumsum(n)]))
        return {"x": lists if n.max() > 3 else lists.to_padded(), "n": n}

    stream = ab.from_arrays({"n": LENGTHS}).batch(4).map(some_lists, batched=True).as_supervised("x", "n")
    assert batches_of(stream.parts(4)) == [plain(batch) for batch in stream]
    late = ab.from_arrays({"n": LENGTHS[2:]}).batch(4).map(some_lists, batched=True).as_supervised("x")
    with pytest.raises(ValueError, match="of one batch the first rows are equally long"):
        list(late.parts(2))
