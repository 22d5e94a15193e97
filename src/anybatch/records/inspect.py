"""What some shards hold: records, their sizes, their features, and what is odd about them."""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from anybatch._native import Index, Survey
from anybatch.errors import AnybatchWarning, BadFeature, ShardsDisagree
from anybatch.records.index import Progress, build_index, keep_index
from anybatch.records.infer import Facts, facts_of, feature_of, sample
from anybatch.records.overview import Examined, Overview, ShardReport, report_of
from anybatch.records.seen import Seen, seen_in
from anybatch.records.shards import Paths, Shard, find_files
from anybatch.records.sizes import Sizes, joined_sizes, sizes_of
from anybatch.records.threads import on_threads
from anybatch.records.verify import known_or_built


@dataclass(frozen=True, slots=True)
class FeatureReport:
    """What the records hold under one name, and how `features=None` would read that, if it could."""

    seen: Seen
    feature: str | None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a user should know; `wrong` if reading the data as it is would fail."""

    wrong: bool
    what: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """What some shards hold."""

    overview: Overview
    sizes: Sizes
    looked_at: int
    """How many records the features were looked for in."""
    not_examples: int
    """How many of those are no `tf.train.Example`."""
    features: tuple[FeatureReport, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """One file, looked into. Of one that could not be examined nothing but the report says anything."""

    report: ShardReport
    sizes: Sizes
    survey: Survey


def inspect(paths: Paths, *, everything: bool = False, progress: Progress | None = None) -> Inspection:
    """Return what the shards hold, indexed first where they are not; features from a sample of each.

    With `everything` every record is looked into, and every checksum checked: one walk does both.
    """
    looking = partial(look_into, everything=everything, progress=progress)
    return _judged(list(on_threads(looking, find_files(paths))))


def look_into(file: str, *, everything: bool, progress: Progress | None = None) -> Look:
    """Return what one file holds, nothing judged."""
    seen: list[tuple[Index, Survey]] = []

    def examine(shard: Shard) -> Examined:
        found, survey = _surveyed(shard, progress) if everything else _sampled(shard, progress)
        seen.append((found[0], survey))
        return found

    report = report_of(file, examine)
    if not seen:
        return Look(report, Sizes(), Survey())
    index, survey = seen[0]
    # a survey of everything has met every record; of a sample only the index knows all sizes
    return Look(report, sizes_of([survey if everything else index]), survey)


def _surveyed(shard: Shard, progress: Progress | None) -> tuple[Examined, Survey]:
    survey = Survey()
    index = build_index(shard, survey=survey, progress=progress)
    return (index, keep_index(shard, index), False), survey


def _sampled(shard: Shard, progress: Progress | None) -> tuple[Examined, Survey]:
    return known_or_built(shard, progress=progress), sample(shard)


def _judged(looks: list[Look]) -> Inspection:
    overview = Overview(tuple(look.report for look in looks))
    looked_at = sum(look.survey.records for look in looks)
    not_examples = sum(look.survey.malformed for look in looks)
    by_shard = [(_shard(look), facts_of(look.survey)) for look in looks if look.survey.records]
    features, disagreements = _features(seen_in(look.survey for look in looks), by_shard)
    findings = [
        *notes_on_shards(overview.shards),
        *notes_on_records(looked_at, not_examples),
        *disagreements,
        *notes_on_values(feature.seen for feature in features),
    ]
    sizes = joined_sizes(look.sizes for look in looks)
    return Inspection(overview, sizes, looked_at, not_examples, tuple(features), tuple(findings))


def _shard(look: Look) -> Shard:
    return Shard(look.report.file, look.report.compression)


def _features(
    seen: list[Seen], by_shard: list[tuple[Shard, dict[str, Facts]]]
) -> tuple[list[FeatureReport], list[Finding]]:
    features, findings = [], []
    for one in seen:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", AnybatchWarning)
            try:
                inferred = repr(
                    feature_of(one.name, [(shard, facts.get(one.name)) for shard, facts in by_shard])
                )
            except ShardsDisagree as error:
                inferred = None
                findings.append(Finding(wrong=True, what=str(error)))
            except BadFeature:
                inferred = None
        features.append(FeatureReport(one, inferred))
        findings += [Finding(wrong=False, what=str(warning.message)) for warning in caught]
    return features, findings


def notes_on_shards(shards: Iterable[ShardReport]) -> Iterator[Finding]:
    """Yield what is odd about the files themselves."""
    good = [shard for shard in shards if not shard.problem]
    empty = [shard.file for shard in good if not shard.records]
    unverified = [shard.file for shard in good if not shard.verified]
    packed = sorted({shard.compression or "none" for shard in good})
    if empty:
        yield Finding(
            wrong=False, what=f"{len(empty):,} of {len(good):,} shards hold no records, `{empty[0]}` first"
        )
    if unverified:
        what = f"the data of {len(unverified):,} of {len(good):,} shards was never checked in full"
        yield Finding(wrong=False, what=f"{what}; `anybatch verify` does that")
    if len(packed) > 1:
        yield Finding(wrong=False, what=f"the shards are compressed in different ways: {', '.join(packed)}")


def notes_on_records(looked_at: int, not_examples: int) -> Iterator[Finding]:
    """Yield whether the records are something else than Examples."""
    if not not_examples:
        return
    if not_examples == looked_at:
        what = f"none of the {looked_at:,} records looked at is a tf.train.Example"
    else:
        what = f"{not_examples:,} of the {looked_at:,} records looked at are no tf.train.Example"
    yield Finding(wrong=False, what=f"{what}; features=bytes reads them as they are")


def notes_on_values(features: Iterable[Seen]) -> Iterator[Finding]:
    """Yield which features hold numbers that training chokes on."""
    for seen in features:
        if seen.not_finite:
            what = f"feature `{seen.name}` holds {seen.not_finite:,} values that are NaN or infinite"
            yield Finding(wrong=False, what=what)
