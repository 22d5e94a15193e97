"""The same chain of operations gives what tf.data gives: element by element, type by type."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

import anybatch as ab
from tests.stream.pipelines import IN_FILES, shards
from tests.stream.stream_laws import law, plain

OF_TENSORFLOW = {"n": tf.io.FixedLenFeature([], tf.int64), "x": tf.io.FixedLenFeature([2], tf.float32)}


def our_range(first, count):
    return ab.from_arrays(np.arange(first, first + count))


def their_range(first, count):
    return tf.data.Dataset.range(first, first + count)


def mapping(first, count):
    numbers = np.arange(first, first + count)
    return {"n": numbers, "x": np.stack([numbers, -numbers], axis=1).astype(np.float32)}


def our_mapping(first, count):
    return ab.from_arrays(mapping(first, count))


def their_mapping(first, count):
    return tf.data.Dataset.from_tensor_slices(mapping(first, count))


def pair(first, count):
    numbers = np.arange(first, first + count)
    return numbers, {"half": numbers / 2}


def our_pairs(first, count):
    return ab.from_arrays(pair(first, count))


def their_pairs(first, count):
    return tf.data.Dataset.from_tensor_slices(pair(first, count))


def our_files(first, count):
    features = {"n": ab.Numbers("int64"), "x": ab.Numbers("float32", (2,))}
    return ab.read(shards(), features).skip(first % IN_FILES).take(count)


def their_files(first, count):
    parsed = tf.data.TFRecordDataset(shards()).map(lambda one: tf.io.parse_single_example(one, OF_TENSORFLOW))
    return parsed.skip(first % IN_FILES).take(count)


SOURCES = {
    "a bare array": (our_range, their_range),
    "a mapping": (our_mapping, their_mapping),
    "a tuple of an array and a mapping": (our_pairs, their_pairs),
    "files": (our_files, their_files),
}

# with operators alone, so that NumPy and TensorFlow do the same


def changed(n):
    return n * 2 + 1


def changed_mapping(one):
    return {"n": one["n"] * 2 + 1, "twice": one["x"] * 2, "x": one["x"]}


def changed_pair(n, more):
    """Take a tuple as two arguments, as functions of tf.data do."""
    return n * 2 + 1, {"half": more["half"] * 2}


def wanted(n):
    return n % 3 != 0


def wanted_mapping(one):
    return one["n"] % 3 != 0


def wanted_pair(n, more):
    return (n % 3 != 0) & (more["half"] < 15)


def wanted_batch(n):
    return n[0] % 3 != 0


def wanted_batch_of_mappings(one):
    return one["n"][0] % 3 != 0


def wanted_batch_of_pairs(n, more):
    return (n[0] % 3 != 0) & (more["half"][-1] < 15)


FUNCTIONS = {
    "a bare array": (changed, wanted, wanted_batch),
    "a mapping": (changed_mapping, wanted_mapping, wanted_batch_of_mappings),
    "a tuple of an array and a mapping": (changed_pair, wanted_pair, wanted_batch_of_pairs),
    "files": (changed_mapping, wanted_mapping, wanted_batch_of_mappings),
}


@st.composite
def chains(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Operations with their arguments; at most one of them is `batch`, as anybatch has it."""
    names = draw(st.lists(st.sampled_from(sorted(OPERATIONS)), max_size=6))
    chain = [(name, *draw(OPERATIONS[name])) for name in names]
    first = next((at for at, step in enumerate(chain) if step[0] == "batch"), len(chain))
    return chain[: first + 1] + [step for step in chain[first + 1 :] if step[0] != "batch"]


counts = st.integers(0, 25)
OPERATIONS: dict[str, st.SearchStrategy[tuple[Any, ...]]] = {
    "map": st.just(()),
    "filter": st.just(()),
    "take": st.tuples(st.one_of(counts, st.just(-1))),
    "skip": st.tuples(st.one_of(counts, st.just(-1))),
    "batch": st.tuples(st.integers(1, 8), st.booleans()),
    "repeat": st.tuples(st.integers(0, 3)),
    "shard": st.integers(1, 4).flatmap(lambda count: st.tuples(st.just(count), st.integers(0, count - 1))),
    "concat": st.tuples(counts, counts),
}


def joined_by_us(first, second):
    return ab.concat([first, second])


def joined_by_them(first, second):
    return first.concatenate(second)


def chained(join, source, functions, chain, rows):
    """Return a stream, or a dataset, of so many rows and a chain of operations."""
    mapped, keeps, keeps_batch = functions
    made, so_far = source(0, rows), []
    for step in chain:
        name, *arguments = step
        match name:
            case "map":
                made = made.map(mapped)
            case "filter":
                made = made.filter(keeps_batch if any(one[0] == "batch" for one in so_far) else keeps)
            case "concat":
                # the other one goes through the same maps and batch, so that both are alike
                alike = [one for one in so_far if one[0] in {"map", "batch"}]
                made = join(made, chained(join, lambda *_: source(*arguments), functions, alike, 0))  # noqa: B023
            case _:
                made = getattr(made, name)(*arguments)
        so_far.append(step)
    return made


def check_same(kind, chain, rows):
    our_source, their_source = SOURCES[kind]
    ours = chained(joined_by_us, our_source, FUNCTIONS[kind], chain, rows)
    theirs = chained(joined_by_them, their_source, FUNCTIONS[kind], chain, rows)
    assert [plain(one) for one in ours] == [plain(one) for one in theirs.as_numpy_iterator()]
    check_same_length(ours, theirs)


def check_same_length(ours, theirs):
    """Where tf.data knows how many there are, so do we; where it cannot, neither do we."""
    try:
        expected = len(theirs)
    except TypeError:
        return
    assert len(ours) == expected


@law(st.sampled_from(sorted(SOURCES)), chains(), counts, examples=70, soak=3000)
def test_a_chain_gives_what_tf_data_gives(kind, chain, rows):
    check_same(kind, chain, rows)


ORDER_MATTERS = {
    "take before repeat": [("take", 3), ("repeat", 2)],
    "take behind repeat": [("repeat", 2), ("take", 13)],
    "skip before batch": [("skip", 3), ("batch", 4, False)],
    "skip behind batch": [("batch", 4, False), ("skip", 1)],
    "take behind batch": [("batch", 4, False), ("take", 2)],
    "shard before filter": [("shard", 2, 1), ("filter",)],
    "shard behind filter": [("filter",), ("shard", 2, 1)],
    "shard behind batch": [("batch", 3, False), ("shard", 2, 0)],
    "map before filter": [("map",), ("filter",)],
    "filter before map": [("filter",), ("map",)],
    "map before batch": [("map",), ("batch", 4, False)],
    "map behind batch": [("batch", 4, False), ("map",)],
    "batches across epochs": [("repeat", 3), ("batch", 4, False)],
    "epochs of batches": [("batch", 4, False), ("repeat", 3)],
    "batches across epochs of a filter": [("filter",), ("repeat", 3), ("batch", 4, True)],
    "batches across streams": [("concat", 20, 5), ("batch", 4, False)],
    "whole batches across streams": [("concat", 20, 5), ("batch", 4, True)],
    "streams of batches": [("batch", 4, False), ("concat", 20, 5)],
    "an epoch of which a filter leaves nothing": [("take", 1), ("filter",), ("concat", 4, 2), ("repeat", 2)],
    "nothing at all": [("take", 0), ("batch", 4, False), ("repeat", 2)],
}


@pytest.mark.parametrize("chain", ORDER_MATTERS.values(), ids=ORDER_MATTERS)
def test_the_order_of_operations_means_what_it_means_in_tf_data(chain):
    check_same("a mapping", chain, 10)


def test_repeat_of_nothing_ends_as_in_tf_data():
    assert list(our_range(0, 5).filter(lambda n: n > 9).repeat()) == []
    assert list(their_range(0, 5).filter(lambda n: n > 9).repeat()) == []


def test_arguments_that_make_no_difference_are_taken():
    def chain(data):
        return (
            data.shuffle(1, seed=3, reshuffle_each_iteration=False, name="a")
            .map(lambda n: n + 1, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True, name="b")
            .filter(lambda n: n > 2, name="c")
            .take(6, name="d")
            .skip(1, name="e")
            .shard(2, 0, name="f")
            .repeat(2, name="g")
            .batch(4, num_parallel_calls=2, deterministic=False, drop_remainder=True, name="h")
            .prefetch(tf.data.AUTOTUNE, name="i")
        )

    theirs, ours = list(chain(their_range(0, 20))), list(chain(our_range(0, 20)))
    assert [len(one) for one in ours] == [len(one) for one in theirs]
