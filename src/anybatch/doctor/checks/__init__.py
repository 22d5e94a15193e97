"""Judgements on what was measured, one file per family. A check takes facts and yields findings."""

from collections.abc import Callable, Iterator

from anybatch.doctor.checks import batch, files, order, training, values
from anybatch.doctor.findings import Finding, in_order
from anybatch.doctor.measure import Asked, Facts

Check = Callable[[Facts, Asked], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    *files.CHECKS,
    *values.CHECKS,
    *order.CHECKS,
    *batch.CHECKS,
    *training.CHECKS,
)


def judged(facts: Facts, asked: Asked) -> list[Finding]:
    """Return everything that the checks find."""
    return in_order(finding for check in CHECKS for finding in check(facts, asked))


__all__ = ["CHECKS", "Check", "judged"]
