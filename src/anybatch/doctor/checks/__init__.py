"""Judgements on what was measured, one file per family. A check takes facts and yields findings."""

from collections.abc import Callable, Iterator

from anybatch.doctor.checks import batch, files, order, training, values
from anybatch.doctor.codes import CODES
from anybatch.doctor.findings import Finding, in_order
from anybatch.doctor.measure import Asked, Facts

_MOST_OF_A_CODE = 20

Check = Callable[[Facts, Asked], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    *files.CHECKS,
    *values.CHECKS,
    *order.CHECKS,
    *batch.CHECKS,
    *training.CHECKS,
)


def judged(facts: Facts, asked: Asked) -> list[Finding]:
    """Return what the checks find, of each code no more than can be read."""
    return in_order(_few_of_each(in_order(one for check in CHECKS for one in check(facts, asked))))


def _few_of_each(findings: list[Finding]) -> Iterator[Finding]:
    """Yield the first findings of each code, and one that counts the others."""
    by_code: dict[str, list[Finding]] = {}
    for finding in findings:
        by_code.setdefault(finding.code, []).append(finding)
    for code, found in by_code.items():
        yield from found[:_MOST_OF_A_CODE]
        rest = found[_MOST_OF_A_CODE:]
        if rest:
            what = f"and {len(rest):,} more of {code}, {CODES[code].title}"
            told = f"the first of them: {rest[0].what}; {rest[0].evidence}"
            yield Finding(code, rest[0].severity, what, told, rest[0].fix)


__all__ = ["CHECKS", "Check", "judged"]
