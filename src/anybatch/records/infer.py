"""What the records hold, found by looking at a sample of every shard."""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias, cast

from anybatch._native import Reader, Survey
from anybatch.errors import AnybatchWarning, BadFeature, NotExamples, NothingToRead, ShardsDisagree
from anybatch.records.features import Bytes, Feature, Numbers, Ragged, Sequence
from anybatch.records.shards import Paths, Shard, find_shards
from anybatch.records.threads import give_way, on_threads

SAMPLE_PER_SHARD = 256
_BATCH = 64

_KINDS = ("bytes", "float32", "int64")
Limits: TypeAlias = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Facts:
    """What one shard's sample shows of one feature."""

    records: int
    present: int
    kinds: tuple[int, int, int]
    counts: Limits
    steps: Limits
    in_lists: bool
    in_both: bool = False
    """It is a feature of the context and a feature list."""

    @property
    def dtype(self) -> str | None:
        """The kind of list, if every record that has one agrees."""
        kinds = [name for name, seen in zip(_KINDS, self.kinds, strict=True) if seen]
        return kinds[0] if len(kinds) == 1 else None

    @property
    def missing(self) -> bool:
        """Whether a record does not have it."""
        return self.present < self.records

    @property
    def count(self) -> int | None:
        """How many values each record has, if always the same and never missing."""
        if self.counts is None or self.counts[0] != self.counts[1]:
            return None
        return self.counts[0] if self.in_lists or not self.missing else None


def infer_features(paths: Paths, *, compression: str | None = "auto") -> dict[str, Feature]:
    """Return name → feature for what a sample of every shard holds.

    A feature whose length varies, or that is missing in places, becomes `Ragged`: nothing is lost.
    Shards that hold different kinds under one name are an error; other differences are a warning.

    >>> import tempfile
    >>> import anybatch as ab
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = [{"x": [0.5, n], "label": n, "words": [b"a"] * n} for n in range(3)]
    ...     infer_features(ab.write(f"{folder}/a.tfrecord", records))
    {'label': Numbers('int64'), 'words': Ragged('bytes'), 'x': Numbers('float32', shape=(2,))}
    """
    return infer_from(find_shards(paths, compression))


def infer_from(shards: Iterable[Shard]) -> dict[str, Feature]:
    """Return what the records of these shards hold."""
    found = [(shard, facts) for shard, facts in on_threads(_with_facts, shards) if facts is not None]
    if not found:
        raise NothingToRead([shard.path for shard in shards])
    names = sorted({name for _, facts in found for name in facts})
    if not names:
        raise NotExamples(found[0][0].path, "its records have no features")
    return {name: feature_of(name, [(shard, facts.get(name)) for shard, facts in found]) for name in names}


def sample(shard: Shard) -> Survey:
    """Return a survey of a shard's first records, damaged ones left out."""
    reader = Reader(
        [(shard.path, shard.compression, None)],
        None,
        batch=_BATCH,
        most=_BATCH,
        drop_remainder=False,
        on_corrupt="skip",
        order=None,
        start=0,
        threads=1,
        depth=1,
        limit_bytes=1 << 40,
    )
    survey = Survey()
    for values, offsets in islice(_batches(reader), max(1, SAMPLE_PER_SHARD // _BATCH)):
        give_way()
        survey.add(values, offsets)
    return survey


def _batches(reader: Reader) -> Iterator[tuple[Any, Any]]:
    while (batch := reader.next()) is not None:
        values, offsets = batch.columns[0]
        yield values, offsets[0]


def _with_facts(shard: Shard) -> tuple[Shard, dict[str, Facts] | None]:
    survey = sample(shard)
    if not survey.records:
        return shard, None
    if survey.malformed:
        raise NotExamples(
            shard.path, f"{survey.malformed:,} of the first {survey.records:,} records are none"
        )
    return shard, facts_of(survey)


def facts_of(survey: Survey) -> dict[str, Facts]:
    """Return name → facts of everything that a survey has seen."""
    facts: dict[str, Facts] = {}
    for level, name, seen in survey.features():
        facts[name] = _facts(survey, level, seen, in_both=name in facts)
    return facts


def _facts(survey: Survey, level: str, seen: dict[str, Any], *, in_both: bool) -> Facts:
    return Facts(
        records=survey.records,
        present=seen["present"],
        kinds=tuple(seen["kinds"]),
        counts=seen["counts"],
        steps=seen["steps"],
        in_lists=level == "list",
        in_both=in_both,
    )


def feature_of(name: str, by_shard: list[tuple[Shard, Facts | None]]) -> Feature:
    """Return the feature that reads a name in all shards: an error, or a warning, where they differ."""
    seen = [(shard, facts) for shard, facts in by_shard if facts is not None and any(facts.kinds)]
    if not seen:
        raise BadFeature(name, "it has no values in any sampled record; name the features you want")
    dtype = _one_dtype(name, seen)
    missing = [shard for shard, facts in by_shard if facts is None or not any(facts.kinds)]
    counts = {facts.count for _, facts in seen}
    if missing:
        _warn(
            f"feature `{name}` has values in `{seen[0][0].path}` and none in `{missing[0].path}`: "
            "read as Ragged"
        )
    elif len(counts) > 1:
        (shard_a, a), (shard_b, b) = _two_unlike(seen)
        _warn(
            f"feature `{name}` has {_counted(a)} in `{shard_a.path}` and {_counted(b)} in `{shard_b.path}`: "
            "read as Ragged"
        )
    count = counts.pop() if len(counts) == 1 and not missing else None
    item = _item(dtype, count)
    if not seen[0][1].in_lists:
        return item
    return Sequence(item, allow_missing=any(facts is None or facts.missing for _, facts in by_shard))


def _one_dtype(name: str, seen: list[tuple[Shard, Facts]]) -> str:
    first_shard, first = seen[0]
    for shard, facts in seen:
        if facts.in_both:
            raise ShardsDisagree(name, shard.path, "in the context", shard.path, "a feature list too")
        if facts.dtype is None:
            raise ShardsDisagree(name, shard.path, "of one kind", shard.path, "of another in other records")
        if (facts.dtype, facts.in_lists) != (first.dtype, first.in_lists):
            raise ShardsDisagree(name, first_shard.path, _kind(first), shard.path, _kind(facts))
    return cast(str, first.dtype)


def _kind(facts: Facts) -> str:
    return f"a feature list of {facts.dtype}" if facts.in_lists else f"{facts.dtype}"


def _item(dtype: str, count: int | None) -> Numbers | Bytes | Ragged:
    if count is None or count == 0:
        return Ragged(dtype)
    shape = () if count == 1 else (count,)
    return Bytes(shape=shape) if dtype == "bytes" else Numbers(dtype, shape)


def _two_unlike(seen: list[tuple[Shard, Facts]]) -> list[tuple[Shard, Facts]]:
    first = seen[0]
    return [first, next(other for other in seen if other[1].count != first[1].count)]


def _counted(facts: Facts) -> str:
    if facts.counts is None:
        return "no values"
    low, high = facts.counts
    missing = " and is sometimes missing" if facts.missing else ""
    return (f"{low:,} values" if low == high else f"{low:,} to {high:,} values") + missing


def _warn(text: str) -> None:
    warnings.warn(text, AnybatchWarning, stacklevel=2)
