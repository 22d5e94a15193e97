"""Order: data sorted or clustered by label or by time, and what a shuffle buffer makes of it."""

from collections.abc import Iterator

from anybatch.doctor.checks.batch import batch_instead, reshuffled, shuffled_read
from anybatch.doctor.findings import Finding, Severity
from anybatch.doctor.measure import Asked, Facts
from anybatch.doctor.measure.sample import TIME
from anybatch.doctor.mixing import Mix, buffered_mix, classes_per_batch, smallest_buffer, stored_mix
from anybatch.units import size

USUAL_BATCH = 32
"""Keras' own."""

_SORTED = 0.9
_ENOUGH = 20


def clustered(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB301: neighbours have the same label."""
    label = facts.sample.label
    batch = _judged_size(facts, asked)
    if label is None or len(label.codes) < _ENOUGH or batch >= facts.records:
        # one batch holds everything, in whatever order
        return
    mix = stored_mix(label, batch)
    if not mix.is_off:
        return
    needed = smallest_buffer(label, batch, facts.records)
    stored, drawn = classes_per_batch(label, batch)
    kind = "tenths of the range" if label.continuous else "classes"
    reading = shuffled_read(facts, needed)
    bounded = f"\n# or while reading, in constant memory: {reading}.batch({batch})" if reading else ""
    yield Finding(
        "AB301",
        _how_bad(mix, batch, asked),
        f"the records are sorted or clustered by `{label.name}`: neighbours are alike",
        f"batches of {batch:,} as stored hold {stored:.1f} {kind}, random ones {drawn:.1f}; their mix varies "
        f"{mix.excess:.1f} times as much; the smallest shuffle buffer that repairs it has {needed:,} of "
        f"{facts.records:,} records, {size(int(needed * facts.mean_bytes))}",
        f"{reshuffled(facts)}{bounded}",
    )


def _judged_size(facts: Facts, asked: Asked) -> int:
    """Return how many records in a row have to be mixed: a batch; where that is one record, some updates.

    Where a batch is larger than the data, it is the one that is advised instead.
    """
    wanted = asked.batch_size or USUAL_BATCH
    if asked.batch_size and wanted > facts.records:
        wanted = batch_instead(facts)
    return wanted if wanted > 1 else USUAL_BATCH


def _how_bad(mix: Mix, batch: int, asked: Asked) -> Severity:
    if asked.shuffled:
        return Severity.NOTE
    return Severity.ERROR if mix.excess > batch / 2 else Severity.WARNING


def buffer_too_small(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB302: the given buffer does not undo the order."""
    label, batch = facts.sample.label, _judged_size(facts, asked)
    if label is None or asked.shuffle_buffer is None or len(label.codes) < _ENOUGH:
        return
    if batch >= facts.records:
        return
    mix = buffered_mix(label, batch, asked.shuffle_buffer, facts.records)
    if not mix.is_off:
        return
    needed = smallest_buffer(label, batch, facts.records)
    exactly = "without a buffer" if facts.compressed else "exactly"
    reading = shuffled_read(facts, needed)
    instead = f"# or {exactly}: {reading}.batch({batch})" if reading else f"# or: {reshuffled(facts)}"
    yield Finding(
        "AB302",
        Severity.WARNING,
        f"a shuffle buffer of {asked.shuffle_buffer:,} does not undo the order of these records",
        f"the mix of batches of {batch:,} still varies {mix.excess:.1f} times as much as among random draws; "
        f"{needed:,} records would do, {size(int(needed * facts.mean_bytes))}",
        f".shuffle({needed})\n{instead}",
    )


def by_time(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB303: records in the order in which they happened."""
    for name, rising in facts.sample.rising.items():
        if not TIME.search(name) or facts.sample.records < _ENOUGH:
            continue
        if max(rising, 1 - rising) < _SORTED:
            continue
        told = f"{rising:.0%} of changes rise" if rising > 0.5 else f"newest first: {1 - rising:.0%} fall"
        yield Finding(
            "AB303",
            Severity.NOTE,
            f"the records are in the order of `{name}`",
            f"{told}, over {facts.sample.records:,} records",
            "# split by time for validation, and shuffle what is trained on: "
            f"{shuffled_read(facts) or reshuffled(facts)}",
        )


CHECKS = (clustered, buffer_too_small, by_time)
