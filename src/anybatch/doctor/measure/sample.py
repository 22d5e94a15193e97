"""Read the values of some records: all of a small data set, blocks spread over a large one."""

import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from itertools import accumulate
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from anybatch.doctor.measure.facts import (
    SAMPLE_BLOCK,
    LabelFacts,
    LengthFacts,
    Place,
    SampleFacts,
    ShardFacts,
)
from anybatch.doctor.measure.labels import label_facts, marked_places
from anybatch.errors import AnybatchError
from anybatch.records import Ragged, RaggedColumn, RecordSet, Shard, int64s, load_or_build

_ROWS = 512
_SHORT_BYTES = 64
SAMPLE_BYTES = 64 << 20
SAMPLE_RECORDS = 100_000
WHOLE_BYTES = 256 << 20
WHOLE_RECORDS = 1_000_000
"""Up to these, the values of all records are kept for a moment: a few hundred bytes each."""

_MOST_COLUMNS = 65_536
_MOST_NAMES = 1000
_FEWEST_NAMES = 50
_MOST_CELLS = 1 << 26
"""Names times records: four bytes are kept for each."""

_INT32 = np.iinfo(np.int32).max
TIME = re.compile(r"(^|[_/.])(time|timestamp|date|datetime|created|year|day)([_/.]|$)", re.IGNORECASE)
"""What features are called that say when something was."""

_MOST_ODD = 5
_FEWEST_CHANGES = 5
_DTYPES = {"bytes": "bytes", "float": "float32", "int64": "int64"}


def sample_of(shards: Sequence[ShardFacts], *, label: str | None, everything: bool) -> SampleFacts:
    """Return what the values of a sample show, but for records that are no Examples.

    What else cannot be decoded ends it and is told.
    """
    readable = [shard for shard in shards if not shard.report.problem and shard.report.records]
    if not readable:
        return SampleFacts(np.empty(0, np.int64))
    sampled = _Sample(readable, everything=everything)
    # side by side: what takes longest, reading and decoding, lets other threads run
    with ThreadPoolExecutor(1) as pool:
        facts = pool.submit(sampled.fingerprints)
        try:
            values = sampled.values(label)
        except AnybatchError as error:
            values = {"stopped_by": str(error)}
        return replace(facts.result(), **values)


class _Sample:
    """The same records, read as bytes and as values."""

    def __init__(self, readable: Sequence[ShardFacts], *, everything: bool) -> None:
        self._facts = readable
        self._shards = tuple(Shard(one.report.file, one.report.compression) for one in readable)
        # read once for all passes: of 512 shards each time took 80 ms of a profile, the sample 360
        self._indexes = [load_or_build(shard) for shard in self._shards]
        self._starts = [0, *accumulate(index.records for index in self._indexes)]
        records = sum(one.report.records for one in readable)
        mean = max(1.0, sum(one.sizes.total_bytes for one in readable) / max(1, records))
        whole = everything and records <= WHOLE_RECORDS and records * mean <= WHOLE_BYTES
        self._take = self._starts[-1] if whole else min(SAMPLE_RECORDS, int(SAMPLE_BYTES / mean) + 1)

    def place(self, number: int) -> Place:
        """Return where a record lies."""
        shard = int(np.searchsorted(self._starts, number, side="right")) - 1
        return Place(self._shards[shard].path, number - self._starts[shard])

    def _batches(self, features: Mapping[str, Ragged] | None) -> Iterator[tuple[NDArray[np.int64], Any]]:
        """Yield record numbers and columns: in the order of the files, or by blocks in random order."""
        records = RecordSet(self._shards, features, "skip")
        left = self._take
        if left >= self._starts[-1]:
            native = records.native_in_file_order(_ROWS)
        elif any(shard.compression for shard in self._shards):
            # nothing in a compressed file can be gone to: all of it is read, and blocks are kept
            native = _one_in(-(-self._starts[-1] // left), records.native_in_file_order(SAMPLE_BLOCK))
        else:
            blocks = ("window", [0, 0, SAMPLE_BLOCK, 1])
            native = records.native_ordered(_ROWS, [blocks, ("take", [left])], indexes=self._indexes)
        with closing(cast(Generator[Any, None, None], native)):
            for batch in native:
                yield int64s(batch.numbers).copy(), records.columns(batch)
                left -= batch.rows
                if left <= 0:
                    return

    def fingerprints(self) -> SampleFacts:
        """Return which records there are and which are equal."""
        numbers: list[NDArray[np.int64]] = []
        prints: dict[int, int] = {}
        repeated, first = 0, None
        # print → how often it came again, far from where it was first
        apart: Counter[int] = Counter()
        for at, column in self._batches(None):
            numbers.append(at)
            for number, record in zip(at.tolist(), column.to_list(), strict=True):
                printed = hash(record)
                before = prints.setdefault(printed, number)
                if before != number:
                    repeated += 1
                    first = number if first is None else min(first, number)
                    apart[printed] += abs(number - before) >= SAMPLE_BLOCK
        return SampleFacts(
            np.sort(np.concatenate(numbers)) if numbers else np.empty(0, np.int64),
            prints=frozenset(prints),
            repeated=repeated,
            pairs_apart=sum(times == 1 for times in apart.values()),
            first_repeated=None if first is None else self.place(first),
        )

    def values(self, label: str | None) -> dict[str, Any]:
        """Return what the values show, by the names of the facts."""
        records = min(self._take, self._starts[-1])
        most = min(_MOST_NAMES, max(_FEWEST_NAMES, _MOST_CELLS // max(1, records)))
        features = _readable_features(self._facts, most, label)
        gathered = _Gathered(features, label)
        if features:
            for numbers, columns in self._batches(features):
                gathered.add(numbers, columns)
        gathered.finish()
        return {
            "lengths": {name: self._lengths(counts, gathered) for name, counts in gathered.lengths.items()},
            "largest": gathered.largest,
            "rising": gathered.rising(),
            "label": gathered.label_facts(),
        }

    def _lengths(self, lengths: NDArray[np.int32], gathered: "_Gathered") -> LengthFacts:
        counts = Counter(lengths.tolist())
        usual = LengthFacts(counts, ()).usual if counts else 0
        odd = gathered.numbers[np.flatnonzero(lengths != usual)[:_MOST_ODD]]
        return LengthFacts(counts, tuple(map(self.place, odd.tolist())))


def _one_in(several: int, batches: Iterator[Any]) -> Generator[Any, None, None]:
    """Yield one of every so many batches, drawn at random, and the same ones every time."""
    rng = np.random.default_rng(0)
    with closing(cast(Generator[Any, None, None], batches)):
        chosen = 0
        for at, batch in enumerate(batches):
            if at % several == 0:
                chosen = at + int(rng.integers(several))
            if at == chosen:
                yield batch


def _readable_features(shards: Sequence[ShardFacts], most: int, label: str | None) -> dict[str, Ragged]:
    """Return the features that have one kind everywhere; as lists of any length nothing about them fails.

    Of more than `most` it is those that most records have, and the label.
    """
    kinds: dict[str, set[str]] = {}
    present: Counter[str] = Counter()
    for shard in shards:
        for seen in shard.seen:
            kinds.setdefault(seen.name, set()).add("list" if seen.in_lists else seen.kind)
            present[seen.name] += seen.present
    if len(kinds) > most:
        kept = {name for name, _ in present.most_common(most)} | {label}
        kinds = {name: found for name, found in kinds.items() if name in kept}
    return {
        name: Ragged(_DTYPES[kind])
        for name, (kind, *others) in (
            (name, sorted(found - {"no values"}) or [""]) for name, found in kinds.items()
        )
        if not others and kind in _DTYPES
    }


def _in_order(parts: Sequence[tuple[NDArray[np.int64], NDArray[Any]]]) -> NDArray[Any]:
    """Return the values of all parts in the order of their records' numbers."""
    if not parts:
        return np.empty(0)
    numbers = np.concatenate([one for one, _ in parts])
    order = np.argsort(numbers, kind="stable")
    return np.concatenate([values for _, values in parts])[order]


class _Gathered:
    """Values of a sample, as far as they are kept: lengths, magnitudes, and single numbers."""

    def __init__(self, features: Mapping[str, Ragged], label: str | None) -> None:
        self.numbers: NDArray[np.int64] = np.empty(0, np.int64)
        self.lengths: dict[str, NDArray[np.int32]] = {}
        self.largest: dict[str, NDArray[np.float64]] = {}
        self._features = features
        self._label = label
        self._marked: list[tuple[NDArray[np.int64], NDArray[np.int64] | None]] = []
        self._numbers: list[NDArray[np.int64]] = []
        self._lengths: dict[str, list[NDArray[np.int32]]] = {name: [] for name in features}
        # of the others nobody asks for the order
        self._singles: dict[str, list[tuple[NDArray[np.int64], NDArray[Any]]]] = {
            name: [] for name in features if name == label or TIME.search(name)
        }

    def add(self, numbers: NDArray[np.int64], columns: Mapping[str, RaggedColumn]) -> None:
        """Take in one batch."""
        self._numbers.append(numbers)
        for name, column in columns.items():
            if self._features[name].dtype == "bytes":
                self._add_bytes(name, column, numbers)
            else:
                self._add_numbers(name, column, numbers)

    def _add_bytes(self, name: str, column: RaggedColumn, numbers: NDArray[np.int64]) -> None:
        inner: Any = column.values
        sizes = inner.offsets[column.offsets[1:]] - inner.offsets[column.offsets[:-1]]
        self._lengths[name].append(np.minimum(sizes, _INT32).astype(np.int32))
        single = np.diff(column.offsets) == 1
        if name in self._singles and sizes.max(initial=0) <= _SHORT_BYTES:
            values = np.array(inner.to_list(), dtype=object)[column.offsets[:-1][single]]
            self._singles[name].append((numbers[single], values))

    def _add_numbers(self, name: str, column: RaggedColumn, numbers: NDArray[np.int64]) -> None:
        values: Any = column.values
        lengths = np.diff(column.offsets)
        self._lengths[name].append(lengths.astype(np.int32))
        if name in self._singles:
            single = lengths == 1
            self._singles[name].append((numbers[single], values[column.offsets[:-1][single]]))
        # a record of another length is a finding of its own, and hides nothing about the others
        usual = int(np.bincount(lengths).argmax()) if lengths.size else 0
        if 0 < usual <= _MOST_COLUMNS:
            rows = values[np.repeat(lengths == usual, lengths)].reshape(-1, usual)
            self._add_largest(name, np.abs(rows.astype(np.float64)))
            if name == self._label and usual > 1:
                self._marked.append((numbers[lengths == usual], marked_places(rows)))

    def _add_largest(self, name: str, sizes: NDArray[np.float64]) -> None:
        largest = np.where(np.isfinite(sizes), sizes, 0).max(axis=0)
        before = self.largest.get(name)
        if before is None or before.shape == largest.shape:
            self.largest[name] = largest if before is None else np.maximum(before, largest)

    def finish(self) -> None:
        """Put everything into the order of the files."""
        if not self._numbers:
            return
        numbers = np.concatenate(self._numbers)
        order = np.argsort(numbers, kind="stable")
        self.numbers = numbers[order]
        self.lengths = {name: np.concatenate(parts)[order] for name, parts in self._lengths.items() if parts}

    def label_facts(self) -> LabelFacts | None:
        """Return the label as classes: by its value where a record has one, else by the place it marks."""
        if self._label is None:
            return None
        singles = _in_order(self._singles.get(self._label, []))
        if len(singles):
            return label_facts(self._label, singles, marked=False)
        marked = [(numbers, places) for numbers, places in self._marked if places is not None]
        # a record of several classes belongs to none
        told = len(marked) == len(self._marked)
        return label_facts(self._label, _in_order(marked), marked=True) if told else None

    def rising(self) -> dict[str, float]:
        """Return which fraction of its changes rises, for each single number that is a time or the label."""
        found = {}
        for name in self._singles:
            values = _in_order(self._singles[name])
            if self._features[name].dtype == "bytes" or len(values) < 2:
                continue
            # records of one day are in order whatever stands between them
            rises, falls = int((values[1:] > values[:-1]).sum()), int((values[1:] < values[:-1]).sum())
            if rises + falls >= _FEWEST_CHANGES:
                found[name] = rises / (rises + falls)
        return found
