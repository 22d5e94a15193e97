"""Values: missing, of several kinds or lengths, not finite, constant, of odd scale; labels; repetitions."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from anybatch.doctor.checks.files import lengths_by_shard
from anybatch.doctor.checks.labels import trained_on
from anybatch.doctor.findings import Finding, Severity
from anybatch.doctor.measure import Asked, Facts
from anybatch.doctor.measure.facts import LabelFacts
from anybatch.records import Seen

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

_ODD_SHARE = 0.95
_SCALES_APART = 1e4
_RARE = 50
_SOMEWHAT_RARE = 10
_FEW = 0.01
_MANY = 0.2
_MOST_WRITTEN = 32
_MANY_NAMES = 1000
_ALL_COUNTED = 10_000
"""More names than these no survey counts."""
_DTYPES = {"float": "float32", "int64": "int64"}


def missing(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB201: a feature that some records of a shard have and others do not."""
    names, looked = len(facts.names), sum(shard.examples for shard in facts.good)
    if names > _MANY_NAMES and names >= min(looked / 2, _ALL_COUNTED):
        yield Finding(
            "AB201",
            ERROR,
            "nearly every record has feature names of its own: values, such as ids, were written as names",
            f"{names:,} names in {looked:,} records looked at, such as {', '.join(facts.names[:3])}",
            "# write the records again, with the id as a value: {'user': b'u17', 'clicks': 3.0}",
        )
        return
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
            f"features[{name!r}] = {_with_default([seen for _, seen in held])}  # where it is missing",
        )


def _with_default(held: Sequence[Seen]) -> str:
    """Return a feature that takes what is there, and something empty where nothing is."""
    kinds, counts = {seen.kind for seen in held}, {count for seen in held for count in seen.values or ()}
    kind = next(iter(kinds - {"no values"}), "float")
    if any(seen.in_lists for seen in held):
        return f"ab.Sequence({_ragged(kind)}, allow_missing=True)"
    if len(counts) != 1 or len(kinds) != 1:
        return _ragged(kind)
    (count,) = counts
    shape = "" if count == 1 else f", shape=({count},)"
    if kind == "bytes":
        return f'ab.Bytes(default=b""{shape})'
    return f'ab.Numbers("{_DTYPES.get(kind, "float32")}"{shape}, default=0)'


def _ragged(kind: str) -> str:
    return f'ab.Ragged("{_DTYPES.get(kind, kind if kind == "bytes" else "float32")}")'


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
        if len(lengths_by_shard(facts, name)) > 1:
            # that is told of the shards
            continue
        odd = sum(lengths.records.values()) - lengths.records[lengths.usual]
        unit = "bytes" if any(seen.kind == "bytes" for _, seen in facts.seen(name)) else "values"
        few = lengths.usual_share >= _ODD_SHARE
        again = f"# write these records again with {lengths.usual:,} {unit}"
        ragged = f"features[{name!r}] = {_of_any_length([seen for _, seen in facts.seen(name)])}"
        yield Finding(
            "AB203",
            WARNING if few else NOTE,
            f"feature `{name}` {'has another length in a few records' if few else 'varies in length'}",
            f"{lengths.usual:,} {unit} in {lengths.usual_share:.2%} of {facts.sample.records:,} records, "
            f"{min(lengths.records):,} to {max(lengths.records):,} in {odd:,}; {lengths.odd_ones[0]} first",
            again if few else ragged,
        )


def _of_any_length(held: Sequence[Seen]) -> str:
    """Return a feature that takes values of any length."""
    kind = held[0].kind if held else "float"
    if kind == "bytes" and all(seen.values == (1, 1) for seen in held):
        return "ab.Bytes()  # each as long as it is"
    return f"{_ragged(kind)}  # .to_padded() makes a batch of it"


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
                f"data = data.filter(lambda record: np.isfinite(record[{name!r}]).all())",
            )


def constant(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB205: a feature that says nothing."""
    for name in facts.names:
        held = [seen for _, seen in facts.seen(name)]
        ranges = [seen.floats or seen.ints for seen in held]
        ends = {end for one in ranges if one is not None for end in one}
        having = sum(seen.present for seen in held)
        if len(ends) != 1 or None in ranges or having < 2 or name == facts.label:
            continue
        yield Finding(
            "AB205",
            WARNING if held[0].floats else NOTE,
            f"feature `{name}` has one value everywhere",
            f"{_exactly(ends.pop())} in all {having:,} records looked at that have it",
            f"del features[{name!r}]  # it can teach the model nothing",
        )


def _exactly(number: float) -> str:
    """Return a stored number with every digit that it has.

    >>> _exactly(20230101), _exactly(0.25), _exactly(16777216.0)
    ('20230101', '0.25', '16777216')
    """
    return str(number) if isinstance(number, int) else f"{number:.9g}"


def scales(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB206: inputs whose sizes are orders of magnitude apart."""
    floats = {seen.name for shard in facts.good for seen in shard.seen if seen.kind == "float"}
    sizes = {
        (name, at): value
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
    column = facts.sample.largest[large[0]]
    named = [f"{name}[{at}]" if len(facts.sample.largest[name]) > 1 else name for name, at in (large, small)]
    yield Finding(
        "AB206",
        WARNING,
        "inputs differ in scale by orders of magnitude: the large ones drown the others",
        f"`{named[0]}` reaches {sizes[large]:.3g} and `{named[1]}` {sizes[small]:.3g}, "
        f"of {len(sizes):,} inputs",
        f"data = data.map(lambda r: {{**r, {large[0]!r}: r[{large[0]!r}] / {_divisor(column.tolist())}}})",
    )


def _divisor(largest: Sequence[float]) -> str:
    """Return what brings every column to at most about 1, as Python; of many columns, one for all.

    >>> _divisor([3e6]), _divisor([1.0, 0.0, 2.5e7])
    ('3e+06', 'np.float32([1, 1, 2.5e+07])')
    """
    if len(largest) == 1 or len(largest) > _MOST_WRITTEN:
        return f"{max(largest):.3g}"
    return f"np.float32([{', '.join(f'{one or 1:.3g}' for one in largest)}])"


def label_range(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB207: labels that no output stands for."""
    label = facts.sample.label
    if label is None or label.continuous or label.marked:
        return
    if not all(isinstance(one, int) for one in label.classes):
        return
    units = facts.model.units if facts.model else None
    # what a function has made of the labels is judged by what it gives
    given = trained_on(facts) if asked.changed and units else label.classes
    outside = _outside(given, units)
    if not outside or (not units and _are_quantities(label, outside)):
        return
    if asked.changed and units:
        told = f"{', '.join(map(str, outside[:5]))} in the first batch of the stream"
    else:
        counts = dict(zip(label.classes, label.counts.tolist(), strict=True))
        told = ", ".join(f"{one} ({counts[one]:,} records)" for one in outside[:5])
    limit = f"the model has {units} outputs" if units else f"the others are {_shown(given, outside)}"
    highest = max(set(given) - set(outside), default=0)
    known = NOTE if asked.changed else WARNING
    yield Finding(
        "AB207",
        ERROR if units else known,
        f"label `{label.name}` has values that no class stands for",
        f"{told}; {limit}",
        f"data = data.filter(lambda record: 0 <= record[{label.name!r}] < {units or highest + 1})",
    )


def _are_quantities(label: LabelFacts, outside: Sequence[int]) -> bool:
    """Whether labels lie apart because they are amounts, such as prices, and not by mistake."""
    counts = dict(zip(label.classes, label.counts.tolist(), strict=True))
    return len(outside) > 1 and sum(counts[one] for one in outside) > _MANY * sum(counts.values())


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
    # a record that came often is drawn as often as others; of one copy far away, both must have been drawn
    apart, drawn = sample.pairs_apart, facts.drawn_share
    share = min(1.0, (sample.repeated - apart + apart / drawn) / sample.records)
    told = f"{sample.repeated:,} of {sample.records:,} looked at, {sample.repeated / sample.records:.2%}"
    yield Finding(
        "AB210",
        WARNING if share >= _FEW else NOTE,
        "some records are equal to an earlier one, byte for byte",
        f"{told}{_of_all(share, drawn)}; {sample.first_repeated} first",
        "# check that no file is listed or written twice; a split may tear the copies apart",
    )


def _of_all(share: float, drawn: float) -> str:
    """Return what a share of copies in a sample says about all records.

    >>> _of_all(0.2, 0.1), _of_all(0.2, 1.0)
    (', about 20% of all: copies are seen only where both were drawn, and 10% of the records were', '')
    """
    if drawn >= 1:
        return ""
    why = f"copies are seen only where both were drawn, and {100 * drawn:.3g}% of the records were"
    return f", about {100 * share:.3g}% of all: {why}"


def leaked(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB211: records of one set in the other."""
    other = facts.other
    if other is None:
        return
    shared = len(facts.sample.prints & other.sample.prints)
    if not shared:
        return
    # of what is shared, only that is seen which was drawn of the first set too
    seen, drawn = shared / max(1, len(other.sample.prints)), facts.drawn_share
    share = min(1.0, seen / drawn)
    yield Finding(
        "AB211",
        ERROR if share >= _FEW else WARNING,
        "records of the one data set are in the other as well: what is measured there was learnt by heart",
        f"{shared:,} of {len(other.sample.prints):,} different records of `{other.paths}` looked at, "
        f"{seen:.2%}{_of_all(share, drawn)}",
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
