"""Resharding in parts: every new file by itself, from what is known about the sources.

A part is an interval of positions in the order of all records, so nobody has to have written the part before.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anybatch._native import Order, Writer
from anybatch.errors import Damage, ShardChanged
from anybatch.records.assemble import int64s
from anybatch.records.reading import Bounds
from anybatch.records.record_set import RecordSet
from anybatch.records.reshard import LIMIT_BYTES, Source, batch_records, counting_index, held_bytes
from anybatch.records.shards import Shard
from anybatch.records.sizes import Sizes, sizes_of
from anybatch.records.whole_files import WholeFiles

# one batch is read, one waits and one is written
_UNDER_WAY = 3
_AT_A_TIME = 1 << 20


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What has to be known about one source in order to deal out its records."""

    shard: Shard
    records: int
    """How many have a number: the damaged ones keep theirs."""
    bad: tuple[int, ...]
    """The numbers of those that are damaged."""
    sizes: Sizes
    """Of those that are good."""
    damaged: tuple[Damage, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """One new file: the good records at some positions of the order of some sources."""

    file: str
    records: int
    start: int
    stop: int
    first_source: int
    end_source: int
    """Behind the last source."""


@dataclass(frozen=True, slots=True)
class Dealing:
    """What all parts have in common; `seed=None` keeps the order of the sources."""

    sources: tuple[Shard, ...]
    seed: int | None
    on_corrupt: str
    compression: str
    batch_size: int
    limit_bytes: int


def source_facts(shard: Shard, *, on_corrupt: str) -> SourceFacts:
    """Return what one source holds, indexed first if it is not."""
    index = counting_index(shard, on_corrupt)
    damaged = index.damaged
    bad = _numbers_at({offset for offset, *_ in damaged}, index) if index.bad_records else ()
    ledger = tuple((shard.path, *where) for where in damaged)
    return SourceFacts(shard, index.records, bad, sizes_of([index]), ledger)


def unpacked_facts(facts: SourceFacts, into: Path, *, on_corrupt: str) -> SourceFacts:
    """Return a compressed source as a plain file: its good records alone. A second time replaces it."""
    with WholeFiles(overwrite=True) as whole:
        records = RecordSet((facts.shard,), None, on_corrupt)
        Source(records, facts.sizes, None).unpacked(facts.shard, whole.begin(into))
    return source_facts(Shard(os.fspath(into), ""), on_corrupt=on_corrupt)


def dealing(
    sources: Sequence[SourceFacts], sizes: Sizes, *, seed: int | None, on_corrupt: str, compression: str
) -> Dealing:
    """Return how to read such sources within the limit that resharding keeps to."""
    shards = tuple(source.shard for source in sources)
    limit_bytes = max(LIMIT_BYTES, held_bytes(sizes.largest_bytes))
    return Dealing(shards, seed, on_corrupt, compression, batch_records(sizes, _UNDER_WAY), limit_bytes)


def parts_of(
    sources: Sequence[SourceFacts], files: Sequence[str], counts: Sequence[int], seed: int | None
) -> list[Part]:
    """Return which positions make each new file, so that they have so many good records each."""
    starts = np.array([0, *accumulate(source.records for source in sources)])
    bad = _bad_positions(sources, starts, seed)
    # behind so many good records stand as many positions, and those of the damaged ones before them
    goods = np.array([0, *accumulate(counts)])
    ends = goods + np.searchsorted(bad - np.arange(bad.size), goods, side="right")
    parts = zip(files, counts, pairwise(ends.tolist()), strict=True)
    return [_part(file, count, span, starts, seed) for file, count, span in parts]


def write_part(part: Part, *, dealing: Dealing) -> int:
    """Write one new file, whole or not at all, and return its bytes. Doing it again gives the same bytes."""
    with WholeFiles(overwrite=True) as whole:
        temporary = whole.begin(part.file)
        writer = Writer(temporary, dealing.compression)
        for values, offsets in _batches(part, dealing) if part.records else ():
            writer.write_batch(values, offsets)
        written = writer.records
        writer.finish()
        if written != part.records:
            problem = f"{part.records:,} records were counted for `{part.file}`, {written:,} could be read"
            raise ShardChanged(dealing.sources[part.first_source].path, problem)
    return Path(part.file).stat().st_size


def _batches(part: Part, dealing: Dealing) -> Iterator[tuple[Any, Any]]:
    records = RecordSet(dealing.sources[part.first_source : part.end_source], None, dealing.on_corrupt)
    interval = [("skip", [part.start]), ("take", [part.stop - part.start])]
    order = [*_shuffled(dealing.seed), *interval]
    bounds = Bounds(threads=1, limit_bytes=dealing.limit_bytes)
    for batch in records.native_ordered(dealing.batch_size, order, bounds):
        values, (offsets,) = batch.columns[0]
        yield values, offsets


def _shuffled(seed: int | None) -> list[tuple[str, list[int]]]:
    return [] if seed is None else [("shuffle", [seed, 0])]


def _part(file: str, count: int, span: tuple[int, int], starts: NDArray[np.int64], seed: int | None) -> Part:
    start, stop = span
    if seed is not None or start == stop:
        return Part(file, count, start, stop, 0, len(starts) - 1)
    # in order, only the sources that it comes from have to be opened
    first = int(np.searchsorted(starts, start, side="right")) - 1
    end = int(np.searchsorted(starts, stop, side="left"))
    return Part(file, count, start - int(starts[first]), stop - int(starts[first]), first, end)


def _bad_positions(
    sources: Sequence[SourceFacts], starts: NDArray[np.int64], seed: int | None
) -> NDArray[np.int64]:
    """Return where in the order the damaged records stand, ascending."""
    numbered = zip(sources, starts[:-1].tolist(), strict=True)
    numbers = [start + number for source, start in numbered for number in source.bad]
    bad = np.sort(np.array(numbers, dtype=np.int64))
    if seed is None or not bad.size:
        return bad
    order = Order(int(starts[-1]), _shuffled(seed))
    found = [np.flatnonzero(np.isin(block, bad)) + at for at, block in _blocks(order)]
    return np.concatenate(found)


def _blocks(order: Order) -> Iterator[tuple[int, NDArray[np.int64]]]:
    for at in range(0, len(order), _AT_A_TIME):
        yield at, int64s(order.records(at, min(at + _AT_A_TIME, len(order))))


def _numbers_at(offsets: set[int], index: Any) -> tuple[int, ...]:
    """Return the numbers of the records that start at some offsets."""
    wanted, numbers = np.array(sorted(offsets)), []
    for at in range(0, index.records, _AT_A_TIME):
        extents = int64s(index.extents(at, min(at + _AT_A_TIME, index.records))).reshape(-1, 2)
        numbers += (np.flatnonzero(np.isin(extents[:, 0], wanted)) + at).tolist()
    return tuple(numbers)
