"""`anybatch inspect`: what the shards hold."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from anybatch.cli.arguments import JsonOption, PathsArgument
from anybatch.cli.failures import FINE, WRONG, reported
from anybatch.cli.overview import exit_code, overview_document, show_failed, show_ledger, show_shards
from anybatch.cli.progress import bytes_of, progress_bar
from anybatch.cli.report import bar, plain_text, plural, print_json, print_table, say

if TYPE_CHECKING:
    from anybatch.records import FeatureReport, Inspection, Sizes

EXAMPLE = "Example:  anybatch inspect 'train/*.tfrecord'"


@reported
def inspect(
    paths: PathsArgument,
    everything: Annotated[bool, typer.Option("--all", help="Look into every record, not a sample.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Show what the shards hold: records, sizes, features with their ranges, and what is odd.

    Shards are indexed first where they are not. Features come from a sample of every shard.

    Exit code: 0 fine, 1 damage is known or the shards disagree, 2 a file could not be inspected.
    """
    from anybatch.records import find_files
    from anybatch.records import inspect as look

    files = find_files(paths)
    with progress_bar("inspecting", bytes_of(files), shown=not as_json) as progress:
        found = look(files, everything=everything, progress=progress)
    show_failed(found.overview)
    if as_json:
        print_json(_document(found))
    else:
        _show(found, everything=everything)
    wrong = WRONG if any(finding.wrong for finding in found.findings) else FINE
    return max(wrong, exit_code(found.overview))


def _document(found: "Inspection") -> dict[str, object]:
    examples = found.looked_at - found.not_examples
    return {
        **overview_document(found.overview),
        "looked_at": found.looked_at,
        "not_examples": found.not_examples,
        "features": [_feature_document(feature, examples) for feature in found.features],
        "record_bytes": {
            "smallest": found.sizes.smallest_bytes,
            "mean": found.sizes.mean_bytes,
            "largest": found.sizes.largest_bytes,
            "histogram": [asdict(one) for one in found.sizes.bins],
        },
        "findings": [asdict(finding) for finding in found.findings],
    }


def _feature_document(report: "FeatureReport", examples: int) -> dict[str, object]:
    seen = report.seen
    return {
        "name": seen.name,
        "kind": seen.kind,
        "feature_list": seen.in_lists,
        "read_as": report.feature,
        "present": seen.present,
        "missing": examples - seen.present,
        "values": seen.values,
        "steps": seen.steps,
        "bytes_per_value": seen.bytes_per_value,
        "range": seen.ints or seen.floats,
        "not_finite": seen.not_finite,
    }


def _show(found: "Inspection", *, everything: bool) -> None:
    from anybatch.units import size

    overview = found.overview
    files = f"{plural(len(overview.shards) - len(overview.failed), 'shard')}"
    say(f"{files}, {plural(overview.records, 'record')}, {size(overview.file_bytes)}")
    show_shards(overview)
    looked = f"{found.looked_at:,} of {plural(overview.records, 'record')}"
    if found.features:
        say()
        more = "" if everything or found.looked_at == overview.records else "; --all looks into every one"
        _show_features(f"features, from {looked}{more}", found)
    if found.sizes.records:
        say()
        _show_sizes(found.sizes)
    show_ledger(overview.damaged)
    if found.findings:
        say()
    for finding in found.findings:
        say(f"{'wrong' if finding.wrong else 'note'}: {finding.what}")


def _show_features(title: str, found: "Inspection") -> None:
    examples = found.looked_at - found.not_examples
    headers = ("name", "kind", "values", "range", "missing", "not finite", "read as")
    rows = [_feature_row(report, examples) for report in found.features]
    print_table(title, headers, rows)


def _feature_row(report: "FeatureReport", examples: int) -> tuple[object, ...]:
    seen = report.seen
    per = "per step, " + limits(seen.steps, "step") if seen.in_lists else ""
    held = [limits(seen.bytes_per_value, "byte"), limits(seen.ints), limits(seen.floats)]
    return (
        seen.name,
        seen.kind,
        " ".join(part for part in (limits(seen.values), per) if part),
        ", ".join(part for part in held if part),
        examples - seen.present,
        seen.not_finite,
        report.feature or "differs",
    )


def limits(found: "tuple[float, float] | None", what: str = "") -> str:
    """Return a smallest and a largest value as text.

    >>> limits((1, 1)), limits((0, 1024), "byte"), limits((0.5, 2.0)), limits(None)
    ('1', '0 to 1,024 bytes', '0.5 to 2', '')
    """
    if found is None:
        return ""
    low, high = (f"{value:,}" if isinstance(value, int) else f"{value:.6g}" for value in found)
    unit = f" {what}{'' if high == '1' else 's'}" if what else ""
    return (low if low == high else f"{low} to {high}") + unit


def _show_sizes(sizes: "Sizes") -> None:
    from anybatch.units import size

    smallest, largest = size(sizes.smallest_bytes), size(sizes.largest_bytes)
    mean = size(round(sizes.mean_bytes))
    range_text = f"all {mean}" if smallest == largest else f"{smallest} to {largest}, mean {mean}"
    most = max(one.records for one in sizes.bins)
    rows = [
        (one.at_least, one.at_most, one.records, bar(one.records, most, plain=plain_text()))
        for one in sizes.bins
    ]
    print_table(f"record sizes: {range_text}", ("bytes from", "to", "records", ""), rows)
