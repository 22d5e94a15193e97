"""Random schemas for tf.io.parse_example, what they mean in our words, and values that satisfy them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

import anybatch as ab
from tests.records.contents import Contents, Values

DTYPES = {"float32": tf.float32, "int64": tf.int64, "bytes": tf.string}
NAMES = ("a", "", "é", "名前", "a/b", "with space", "x" * 130, "\0", "label")

dtypes = st.sampled_from(sorted(DTYPES))
shapes = st.sampled_from([(), (1,), (3,), (2, 2), (1, 3, 2)])
empty_shapes = st.sampled_from([(0,), (2, 0)])


@dataclass(frozen=True)
class Asked:
    """A feature in TensorFlow's words and in ours, and what a record may hold for it."""

    theirs: Any
    ours: Any
    dtype: str
    counts: Callable[[Contents], int]
    may_be_missing: bool
    key: str | None = None

    def key_in_record(self, name: str) -> str:
        return name if self.key is None else self.key

    def fill(self, contents: Contents) -> Values:
        return contents.values(self.dtype, self.counts(contents))

    def step(self, contents: Contents) -> Values:
        """Return one step of a feature list; of a list of any length it may be without a kind."""
        fixed = isinstance(self.theirs, tf.io.FixedLenSequenceFeature)
        return None if not fixed and contents.chance(6) else self.fill(contents)


def default_of(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    values = Contents(seed).values(dtype, prod(shape))
    # as users write it: Python values, nested; NumPy's own strings would lose the zero bytes at the end
    flat = np.empty(prod(shape), object)
    # no zero below zero: TensorFlow caches constants and takes the two for one
    flat[:] = values if isinstance(values, list) else (np.nan_to_num(values) + 0).tolist()
    return flat.reshape(shape).tolist() if shape else flat[0]


@st.composite
def fixed(draw: st.DrawFn) -> Asked:
    dtype, shape = draw(dtypes), draw(shapes)
    if dtype != "bytes" and draw(st.integers(0, 9)) == 9:
        shape = draw(empty_shapes)
    default = None
    if prod(shape) and draw(st.booleans()):
        default = default_of(dtype, shape, draw(st.integers(0, 2**32)))
    ours = ab.Bytes(default, shape) if dtype == "bytes" else ab.Numbers(dtype, shape, default)
    theirs = tf.io.FixedLenFeature(shape, DTYPES[dtype], default)
    return Asked(theirs, ours, dtype, lambda _: prod(shape), default is not None)


def variable(dtype: str) -> Asked:
    return Asked(tf.io.VarLenFeature(DTYPES[dtype]), ab.Ragged(dtype), dtype, lambda c: c.count(4), True)


def ragged(dtype: str, key: str | None) -> Asked:
    theirs = tf.io.RaggedFeature(DTYPES[dtype], value_key=key)
    return Asked(theirs, ab.Ragged(dtype, key=key), dtype, lambda c: c.count(4), True, key)


@st.composite
def padded(draw: st.DrawFn) -> Asked:
    dtype, shape = draw(dtypes), draw(shapes)
    default = default_of(dtype, (), draw(st.integers(0, 2**32))) if draw(st.booleans()) else None
    theirs = tf.io.FixedLenSequenceFeature(shape, DTYPES[dtype], True, default)
    return Asked(theirs, theirs, dtype, lambda c: c.count(3) * prod(shape), True)


@st.composite
def steps(draw: st.DrawFn) -> Asked:
    dtype, shape, allow_missing = draw(dtypes), draw(shapes), draw(st.booleans())
    theirs = tf.io.FixedLenSequenceFeature(shape, DTYPES[dtype], allow_missing)
    each = ab.Bytes(shape=shape) if dtype == "bytes" else ab.Numbers(dtype, shape)
    return Asked(theirs, ab.Sequence(each, allow_missing), dtype, lambda _: prod(shape), allow_missing)


def in_steps(asked: Asked) -> Asked:
    """Return a list of any length as what each step of a feature list is."""
    return replace(asked, ours=ab.Sequence(asked.ours))


keys = st.none() | st.sampled_from(["elsewhere", "ß"])
in_context = fixed() | st.builds(variable, dtypes) | st.builds(ragged, dtypes, keys)
in_examples = in_context | padded()
in_lists = steps() | (st.builds(variable, dtypes) | st.builds(ragged, dtypes, keys)).map(in_steps)


def several(
    features: st.SearchStrategy[Asked], *, least: int = 1, most: int, prefix: str = ""
) -> st.SearchStrategy[dict[str, Asked]]:
    """Return schemas of so many features; a few names are odd, the rest are counted."""
    names = st.permutations(NAMES).map(lambda some: [*some, *(f"feature {n}" for n in range(most))])
    lists = st.lists(features, min_size=least, max_size=most)
    return st.builds(lambda names, some: distinct(dict(zip(names, some, strict=False)), prefix), names, lists)


def distinct(schema: dict[str, Asked], prefix: str = "") -> dict[str, Asked]:
    """Return a schema in which no two features read the same list."""
    by_key = {asked.key_in_record(prefix + name): (prefix + name, asked) for name, asked in schema.items()}
    return dict(by_key.values())


def record_for(schema: dict[str, Asked], contents: Contents, *, kindless: bool = True) -> dict[str, Values]:
    """Return what one record holds: all that is asked for, unless it may be missing, and something else."""
    record: dict[str, Values] = {}
    for name, asked in schema.items():
        if not (asked.may_be_missing and contents.chance(4)):
            record[asked.key_in_record(name)] = asked.fill(contents)
        elif kindless and contents.chance(2):
            record[asked.key_in_record(name)] = None
    if contents.chance(3):
        record["not asked for"] = contents.values("int64", contents.count(3))
    return record


def lists_for(schema: dict[str, Asked], contents: Contents) -> dict[str, list[Values]]:
    """Return the feature lists of one record, of no step up to a few."""
    return {
        asked.key_in_record(name): [asked.step(contents) for _ in range(contents.count(4))]
        for name, asked in schema.items()
        if not (asked.may_be_missing and contents.chance(4))
    }
