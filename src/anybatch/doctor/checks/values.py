"""Values: missing, of several kinds or lengths, not finite, constant, of odd scale; labels; repetitions."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from anybatch.doctor.checks.labels import trained_on
from anybatch.doctor.findings import Finding, Severity
from anybatch.doctor.measure import Asked, Facts
from anybatch.records import Seen

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

_ODD_SHARE = 0.95
_SCALES_APART = 1e4
_RARE = 50
_SOMEWHAT_RARE = 10
_FEW = 0.01


def missing(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB201: a feature that some records of a shard have and others do not."""
    for name in facts.names:
        held = facts.seen(name)
        lacking = [
            (shard, shard.examples - seen.present) for shard, seen in held if seen.present < shard.examples
        ]
        absent = sum(count for _, count in lacking)
        if not absent or all(seen.present == 0 for _, seen in held):
            continue
        looked = sum(shard.examples for shard, _ in held)
        yield Finding(
            "AB201",
            WARNING,
            f"feature `{name}` is missing in some records",
            f"{absent:,} of {looked:,} records lack it, in `{lacking[0][0].report.file}` first",
            f'features["{name}"] = ab.Numbers(default=0)  # or ab.Ragged, where missing is empty',
        )


def kinds_mixed(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB202: one name, several kinds of list, in one shard."""
    for name in facts.names:
        for shard, seen in facts.seen(name):
            if " or " in seen.kind:
                yield Finding(
                    "AB202",
                    ERROR,
                    f"feature `{name}` is not of one kind",
                    f"{seen.kind} in `{shard.report.file}`, in {_times(seen)} records",
                    f"# write the records again with one kind for `{name}`",
                )
                break
    if facts.sample.stopped_by:
        what = "some records hold something else than the others under one name"
        fix = "# write these records again as the others are"
        yield Finding("AB202", ERROR, what, facts.sample.stopped_by, fix)


def _times(seen: Seen) -> str:
    return " and ".join(f"{times:,}" for times in seen.kinds if times)


def misshapen(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB203: a few records are of another length than nearly all."""
    for name, lengths in facts.sample.lengths.items():
        if len(lengths.records) < 2 or _is_absent_only(lengths.records):
            continue
        odd = sum(lengths.records.values()) - lengths.records[lengths.usual]
        unit = "bytes" if any(seen.kind == "bytes" for _, seen in facts.seen(name)) else "values"
        few = lengths.usual_share >= _ODD_SHARE
        again = f"# write these records again with {lengths.usual:,} {unit}"
        ragged = f'features["{name}"] = ab.Ragged(...)  # .to_padded() makes a batch of it'
        yield Finding(
            "AB203",
            WARNING if few else NOTE,
            f"feature `{name}` {'has another length in a few records' if few else 'varies in length'}",
            f"{lengths.usual:,} {unit} in {lengths.usual_share:.2%} of {facts.sample.records:,} records, "
            f"{min(lengths.records):,} to {max(lengths.records):,} in {odd:,}; {lengths.odd_ones[0]} first",
            again if few else ragged,
        )


def _is_absent_only(records: Any) -> bool:
    return len(records) == 2 and 0 in records


def not_finite(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB204: NaN and infinity."""
    for name in facts.names:
        held = [(shard, seen) for shard, seen in facts.seen(name) if seen.not_finite]
        if held:
            yield Finding(
                "AB204",
                ERROR,
                f"feature `{name}` holds NaN or infinity: one such value makes every weight NaN",
                f"{sum(seen.not_finite for _, seen in held):,} values, in `{held[0][0].report.file}` first",
                f'data = data.filter(lambda record: np.isfinite(record["{name}"]).all())',
            )


def constant(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB205: a feature that says nothing."""
    looked = sum(shard.examples for shard in facts.good)
    for name in facts.names:
        held = [seen for _, seen in facts.seen(name)]
        ranges = [seen.floats or seen.ints for seen in held]
        ends = {end for one in ranges if one is not None for end in one}
        if len(ends) != 1 or None in ranges or looked < 2 or name == facts.label:
            continue
        yield Finding(
            "AB205",
            WARNING if held[0].floats else NOTE,
            f"feature `{name}` has one value everywhere",
            f"{ends.pop():g} in all {looked:,} records looked at",
            f'del features["{name}"]  # it can teach the model nothing',
        )


def scales(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB206: inputs whose sizes are orders of magnitude apart."""
    floats = {seen.name for shard in facts.good for seen in shard.seen if seen.kind == "float"}
    sizes = {
        f"{name}[{at}]" if len(column) > 1 else name: value
        for name, column in facts.sample.largest.items()
        if name in floats and name != facts.label
        for at, value in enumerate(column.tolist())
        if value > 0
    }
    if not sizes:
        return
    small, large = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
    if sizes[large] < _SCALES_APART * sizes[small]:
        return
    feature = large.split("[")[0]
    yield Finding(
        "AB206",
        WARNING,
        "inputs differ in scale by orders of magnitude: the large ones drown the others",
        f"`{large}` reaches {sizes[large]:.3g} and `{small}` {sizes[small]:.3g}, of {len(sizes):,} inputs",
        f'data = data.map(lambda r: {{**r, "{feature}": (r["{feature}"] - mean) / deviation}})',
    )


def label_range(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB207: labels that no output stands for."""
    label = facts.sample.label
    if label is None or label.continuous or not all(isinstance(one, int) for one in label.classes):
        return
    units = facts.model.units if facts.model else None
    # what a function has made of the labels is judged by what it gives
    given = trained_on(facts) if asked.changed and units else label.classes
    outside = _outside(given, units)
    if not outside:
        return
    if asked.changed and units:
        told = f"{', '.join(map(str, outside[:5]))} in the first batch of the stream"
    else:
        counts = dict(zip(label.classes, label.counts.tolist(), strict=True))
        told = ", ".join(f"{one} ({counts[one]:,} records)" for one in outside[:5])
    limit = f"the model has {units} outputs" if units else f"the others are {_shown(given, outside)}"
    known = NOTE if asked.changed else WARNING
    yield Finding(
        "AB207",
        ERROR if units else known,
        f"label `{label.name}` has values that no class stands for",
        f"{told}; {limit}",
        f'data = data.filter(lambda record: 0 <= record["{label.name}"] < {units or "classes"})',
    )


def _outside(classes: tuple[int, ...], units: int | None) -> list[int]:
    """Return the labels below 0, and those far above all others.

    >>> _outside((0, 1, 2, 255), None), _outside((-1, 1), None), _outside((0, 1, 2), 2)
    ([255], [], [2])
    """
    if units is not None and units > 1:
        return [one for one in classes if not 0 <= one < units]
    if classes == (-1, 1):
        return []
    ordered = sorted(classes)
    far = next(
        (at + 1 for at, (low, high) in enumerate(pairwise(ordered)) if high - low > 2 * (at + 1) + 8), None
    )
    return [one for one in ordered if one < 0] + (ordered[far:] if far else [])


def _shown(classes: tuple[int, ...], outside: list[int]) -> str:
    inside = sorted(set(classes) - set(outside))
    return f"{inside[0]} to {inside[-1]}" if inside else "none"


def balance(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB208, AB209: classes that hardly occur, or only one class."""
    label = facts.sample.label
    if label is None or label.continuous:
        return
    counts = dict(zip(label.classes, label.counts.tolist(), strict=True))
    rare, common = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
    if len(counts) == 1 and facts.sample.records > 1:
        yield Finding(
            "AB209",
            ERROR,
            f"label `{label.name}` is the same everywhere: there is nothing to learn",
            f"{common!r} in all {counts[common]:,} records looked at",
            "# check which files were named, and how the labels were written",
        )
    elif counts[common] >= _SOMEWHAT_RARE * counts[rare]:
        weights = f"class_weight = {{{_written(rare)}: {counts[common] / counts[rare]:.3g}}}"
        yield Finding(
            "AB208",
            WARNING if counts[common] >= _RARE * counts[rare] else NOTE,
            f"class {_written(rare)} of `{label.name}` is rare: a model that never says it looks right",
            f"{counts[rare]:,} records against {counts[common]:,} of class {_written(common)}",
            f"{weights}  # in fit(..., class_weight=class_weight)",
        )


def _written(one: Any) -> str:
    return repr(one.decode(errors="replace")) if isinstance(one, bytes) else repr(one)


def repeated(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB210: records that are there more than once."""
    sample = facts.sample
    if not sample.repeated:
        return
    share = sample.repeated / sample.records
    yield Finding(
        "AB210",
        WARNING if share >= _FEW else NOTE,
        "some records are equal to an earlier one, byte for byte",
        f"{sample.repeated:,} of {sample.records:,} looked at, {share:.2%}; {sample.first_repeated} first",
        "# check that no file is listed or written twice; a split may tear the copies apart",
    )


def leaked(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB211: records of one set in the other."""
    other = facts.other
    if other is None:
        return
    shared = len(facts.sample.prints & other.sample.prints)
    if not shared:
        return
    share = shared / max(1, len(other.sample.prints))
    yield Finding(
        "AB211",
        ERROR if share >= _FEW else WARNING,
        "records of the one data set are in the other as well: what is measured there was learnt by heart",
        f"{shared:,} of {len(other.sample.prints):,} different records of `{other.paths}`, {share:.2%}",
        "# split before anything is copied, by a key of the record: hash(key) % 10 == 0 is held out",
    )


CHECKS = (
    missing,
    kinds_mixed,
    misshapen,
    not_finite,
    constant,
    scales,
    label_range,
    balance,
    repeated,
    leaked,
)
