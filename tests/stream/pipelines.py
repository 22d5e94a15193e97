"""Streams of every kind for hypothesis to choose from: where records come from, and what is done to them."""

import atexit
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import anybatch as ab
from anybatch.stream import Stream

FEATURES = {
    "n": ab.Numbers("int64"),
    "x": ab.Numbers("float32", (2,)),
    "r": ab.Ragged("int64"),
    "b": ab.Bytes(),
}
SHARD_SIZES = (5, 1, 8)
IN_FILES = sum(SHARD_SIZES)

_MEMORY = next((folder for folder in ["/dev/shm"] if Path(folder).is_dir()), None)


def record_of(number: int) -> dict[str, Any]:
    """Return the record with a number: scalars, arrays, lists and bytes, all told by the number."""
    return {
        "n": np.int64(number),
        "x": np.array([number, -number], np.float32) / 4,
        "r": np.arange(number % 4, dtype=np.int64) + number,
        "b": b"\0%d" % number * (number % 3),
    }


@cache
def shards(compression: str | None = None, sizes: tuple[int, ...] = SHARD_SIZES) -> list[str]:
    """Return shards with the records 0, 1, 2 …, written once and removed at the end."""
    folder = tempfile.TemporaryDirectory(dir=_MEMORY)
    atexit.register(folder.cleanup)
    first, paths = 0, []
    for size in sizes:
        path = Path(folder.name) / f"from-{first:02}.tfrecord"
        ab.write(path, map(record_of, range(first, first + size)), compression=compression)
        paths.append(str(path))
        first += size
    return paths


def from_files(compression: str | None = None, sizes: tuple[int, ...] = SHARD_SIZES) -> Stream:
    return ab.read(shards(compression, sizes), FEATURES)


def from_memory(count: int, first: int = 0) -> Stream:
    n = np.arange(first, first + count)
    return ab.from_arrays({"n": n, "x": np.stack([n, -n], axis=1).astype(np.float32) / 4})


def doubled(record: Any) -> Any:
    return {**record, "n": record["n"] * 2 + 1}


def noisy(record: Any, rng: np.random.Generator) -> Any:
    return {**record, "x": record["x"] + np.float32(rng.integers(1000) / 8)}


def noisy_columns(columns: Any, seeds: Any) -> Any:
    noise = (seeds % np.uint64(1000)).astype(np.float32) / 8
    return {**columns, "x": columns["x"] + noise[:, None]}


def not_a_third(record: Any) -> bool:
    return bool(np.sum(record["n"]) % 3 != 0)


def only_a_third(record: Any) -> bool:
    return not not_a_third(record)


seeds = st.integers(0, 2**32)
few = st.integers(0, 8)
some = st.integers(0, 16)


@st.composite
def sources(draw: st.DrawFn) -> Stream:
    """Records as they lie: of arrays, files or compressed files."""
    kind = draw(st.sampled_from(["memory", "memory", "files", "files", "packed"]))
    if kind == "memory":
        return from_memory(draw(some))
    return from_files("GZIP" if kind == "packed" else None)


@st.composite
def ordered(draw: st.DrawFn) -> Stream:
    """Records in an order of their own, which is computed and not read."""
    stream = from_memory(draw(some)) if draw(st.booleans()) else from_files()
    for change in draw(st.lists(st.sampled_from(["shuffle", "skip", "take", "map"]), max_size=3)):
        match change:
            case "shuffle":
                stream = stream.shuffle(seed=draw(seeds))
            case "skip":
                stream = stream.skip(draw(few))
            case "take":
                stream = stream.take(draw(some))
            case "map":
                stream = stream.map(doubled)
    return stream


@st.composite
def changed(draw: st.DrawFn, streams: st.SearchStrategy[Stream], *, most: int = 3) -> Stream:
    """Some operations behind any stream of records or batches."""
    stream = draw(streams)
    for change in draw(st.lists(st.sampled_from(CHANGES), max_size=most)):
        stream = change(draw, stream)
    return stream


def _sharded(draw: st.DrawFn, stream: Stream) -> Stream:
    count = draw(st.integers(1, 3))
    return stream.shard(count, draw(st.integers(0, count - 1)))


def _in_windows(draw: st.DrawFn, stream: Stream) -> Stream:
    window = draw(st.sampled_from([1, 100, 2000]))
    return stream if stream._stage.batched else stream.shuffle(seed=draw(seeds), window=window)


CHANGES = [
    lambda _, stream: stream.map(doubled),
    lambda _, stream: stream.map(doubled, batched=True),
    lambda draw, stream: stream.random_map(noisy, seed=draw(seeds)),
    lambda draw, stream: stream.random_map(noisy_columns, seed=draw(seeds), batched=True),
    lambda draw, stream: stream.filter(draw(st.sampled_from([not_a_third, only_a_third]))),
    lambda draw, stream: stream.take(draw(some)),
    lambda draw, stream: stream.skip(draw(few)),
    lambda draw, stream: stream.repeat(draw(st.integers(0, 2))),
    lambda draw, stream: stream.repeat().take(draw(some)),
    lambda draw, stream: stream.prefetch(draw(st.sampled_from([None, 1, 3]))),
    lambda draw, stream: stream.epoch(draw(st.integers(0, 3))),
    _sharded,
    _in_windows,
]


@st.composite
def joint(draw: st.DrawFn, streams: st.SearchStrategy[Stream]) -> Stream:
    """Several streams as one, and one of them alone."""
    several = draw(st.lists(streams, min_size=1, max_size=3))
    if len(several) == 1:
        return several[0]
    if draw(st.booleans()):
        return ab.concat(several)
    weights = draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=len(several), max_size=len(several)))
    return ab.mix(several, weights, seed=draw(seeds))


@st.composite
def batched(draw: st.DrawFn, streams: st.SearchStrategy[Stream]) -> Stream:
    return draw(streams).batch(draw(st.integers(1, 6)), drop_remainder=draw(st.booleans()))


@st.composite
def supervised(draw: st.DrawFn, streams: st.SearchStrategy[Stream]) -> Stream:
    names = draw(st.sampled_from([("x", "n"), (["x", "n"],), ({"in": "x"}, "n", "n"), ("x", None, "n")]))
    stream = draw(streams).as_supervised(*names)
    return stream.prefetch() if draw(st.booleans()) else stream.skip(draw(few))


def _only_numbers(columns: Any) -> Any:
    return {"n": columns["n"], "x": columns["x"]}


# streams of files and of arrays can only be joined when they hold the same
_any = st.one_of(ordered(), sources())
_alike = changed(_any.map(lambda stream: stream.map(_only_numbers, batched=True)), most=2)

records = st.one_of(changed(_any), changed(joint(_alike)))
batches = changed(st.one_of(batched(records), joint(batched(_alike))), most=2)
pipelines = st.one_of(records, batches, supervised(records), supervised(batches))
"""Any stream there may be, small enough to be iterated as often as it has elements."""
