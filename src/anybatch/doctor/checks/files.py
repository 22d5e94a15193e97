"""Files: damage, truncation, empty or unequal shards, compression, features that differ, unreadable ones."""

import shlex
from collections.abc import Iterator
from statistics import median_low

from anybatch.doctor.findings import Finding, Severity
from anybatch.doctor.measure import Asked, Facts, ShardFacts
from anybatch.units import size

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

_UNEQUAL = 4
_ENOUGH = 8


def damaged(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB101, AB102: records that cannot be read."""
    cut = {shard.report.file: shard for shard in facts.good if _is_cut(shard)}
    stretches = [
        damage
        for shard in facts.good
        for damage in shard.report.damaged
        if not (shard.report.file in cut and damage is shard.report.damaged[-1])
    ]
    repair = f"anybatch repair {facts.paths} --to repaired"
    if stretches:
        file, offset, length, reason = stretches[0]
        yield Finding(
            "AB101",
            ERROR,
            f"{_several(len(stretches), 'stretch of the data is', 'stretches of the data are')} damaged "
            "and cannot be read",
            f"the first is {length:,} bytes at byte {offset:,} of `{file}`: {reason}; "
            f"{len({one[0] for one in stretches}):,} of {len(facts.shards):,} files concerned",
            f'{repair}\n# or while reading: ab.read(paths, on_corrupt="skip", max_corrupt=0.001)',
        )
    if cut:
        file, offset, length, _reason = next(iter(cut.values())).report.damaged[-1]
        yield Finding(
            "AB102",
            ERROR,
            f"{_several(len(cut), 'file ends', 'files end')} in the middle of a record: "
            "writing or copying was cut off",
            f"`{file}` has {length:,} bytes of a record at byte {offset:,} and ends there",
            f"{repair}\n# then compare the sizes with the originals and copy again what is short",
        )


def _several(count: int, one: str, more: str) -> str:
    return f"{count:,} {one if count == 1 else more}"


def _is_cut(shard: ShardFacts) -> bool:
    """Whether the last damage reaches to the end of the file."""
    if not shard.report.damaged:
        return False
    _, offset, length, reason = shard.report.damaged[-1]
    return offset + length >= shard.report.stream_bytes and any(word in reason for word in _CUT_OFF)


# a header that promises more than the file has, or half a header
_CUT_OFF = ("cut short", "can be")


def unreadable(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB107, AB108: files that could not be examined."""
    failed = [shard.report for shard in facts.shards if shard.report.problem]
    for code, what, fix, reports in (
        (
            "AB107",
            "cannot be read",
            "ls -l FILE  # then: chmod +r FILE, or copy it again",
            [one for one in failed if one.unreadable],
        ),
        (
            "AB108",
            "hold no TFRecords",
            "a narrower glob, such as 'train/*.tfrecord', leaves them out",
            [one for one in failed if not one.unreadable],
        ),
    ):
        if reports:
            yield Finding(
                code,
                ERROR,
                f"{len(reports):,} of {len(facts.shards):,} files {what}",
                f"`{reports[0].file}`: {reports[0].problem}",
                fix.replace("FILE", pasted(reports[0].file)),
            )


def empty(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB103: shards without records."""
    files = [shard.report.file for shard in facts.good if not shard.report.records]
    if files:
        yield Finding(
            "AB103",
            WARNING if len(files) < len(facts.good) else ERROR,
            f"{len(files):,} of {len(facts.good):,} shards hold no records",
            f"`{files[0]}` first; a writer that was never closed leaves such files",
            f"rm {pasted(files[0])}  # or write it again",
        )


def unequal(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB104: one shard has far more records than the others."""
    counts = [shard.report.records for shard in facts.good if shard.report.records]
    # of two shards the smaller one: both together would hide any difference
    usual = median_low(counts) if counts else 0
    if len(counts) < 2 or max(counts) <= _UNEQUAL * usual:
        return
    largest = max(facts.good, key=lambda shard: shard.report.records).report
    yield Finding(
        "AB104",
        WARNING,
        "shards differ so much in size that workers which take whole shards wait for one of them",
        f"`{largest.file}` has {largest.records:,} records, the median shard {usual:,.0f}",
        f"anybatch reshard {facts.paths} --to even --shards {len(counts)}",
    )


def compression(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB105: compressed and plain shards side by side."""
    kinds = sorted({shard.report.compression or "none" for shard in facts.good if shard.report.records})
    if len(kinds) > 1:
        yield Finding(
            "AB105",
            WARNING,
            "the shards are compressed in different ways; TFRecordDataset takes one way for all of them",
            f"compressions: {', '.join(kinds)}",
            f"anybatch reshard {facts.paths} --to alike --shards {len(facts.good)}",
        )


def shards_differ(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB106: a feature is of another kind or length in other shards, or not there at all."""
    looked = [shard for shard in facts.good if shard.examples]
    for name in facts.names:
        seen = {shard.report.file: one for shard, one in facts.seen(name)}
        lacking = [shard.report.file for shard in looked if shard.report.file not in seen]
        kinds = {one.kind: file for file, one in seen.items() if " or " not in one.kind}
        if len(kinds) > 1:
            (one, file), (other, second) = sorted(kinds.items())[:2]
            told = f"{one} in `{file}` and {other} in `{second}`"
        elif len(lengths := lengths_by_shard(facts, name)) > 1:
            (few, file), (many, second) = sorted(lengths.items())[:2]
            told = f"{few:,} values per record in `{file}` and {many:,} in `{second}`"
        elif lacking and len(lacking) < len(looked):
            told = f"in {len(seen):,} shards and not in {len(lacking):,}, such as `{lacking[0]}`"
        else:
            continue
        yield Finding(
            "AB106",
            ERROR,
            f"feature `{name}` differs between shards",
            told,
            f"anybatch inspect {pasted(next(iter(seen)))}  # then write the shards that differ again",
        )


def lengths_by_shard(facts: Facts, name: str) -> dict[int, str]:
    """Return how many values each record has, with a shard of it, if every shard has one length of its own.

    Shards of a few records are not asked: in those, lengths agree by chance.
    """
    found: dict[int, str] = {}
    for shard, seen in facts.seen(name):
        if shard.examples < _ENOUGH:
            continue
        if seen.in_lists or seen.values is None or seen.values[0] != seen.values[1]:
            return {}
        found.setdefault(seen.values[0], shard.report.file)
    return found


def pasted(file: str) -> str:
    """Return a file's name for a shell, in which nothing of it is a command or an option.

    >>> print(pasted("it's; rm x"), pasted("-f"))
    'it'"'"'s; rm x' ./-f
    """
    return shlex.quote(f"./{file}" if file.startswith("-") else file)


def unchecked(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB109: checksums that nobody has looked at."""
    files = [shard.report for shard in facts.good if not shard.report.verified and shard.report.records]
    if files:
        yield Finding(
            "AB109",
            NOTE,
            f"the data of {len(files):,} of {len(facts.good):,} shards was never checked in full",
            f"{size(sum(one.file_bytes for one in files))} were hopped over from header to header",
            f"anybatch verify {facts.paths}",
        )


def not_examples(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB110: records that are no tf.train.Example."""
    strangers = [shard for shard in facts.good if shard.not_examples]
    count, looked = sum(one.not_examples for one in strangers), sum(one.looked_at for one in facts.good)
    if count:
        yield Finding(
            "AB110",
            NOTE if count == looked else ERROR,
            "the records are no tf.train.Example"
            if count == looked
            else "some records are no tf.train.Example",
            f"{count:,} of {looked:,} records looked at, in `{strangers[0].report.file}` first",
            "data = ab.read(paths, bytes)  # each record's bytes as they are",
        )


CHECKS = (damaged, unreadable, empty, unequal, compression, shards_differ, unchecked, not_examples)
