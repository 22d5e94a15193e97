"""The known traps, one file per family. A rule takes a reading of a script and yields findings."""

from collections.abc import Callable, Iterator

from anybatch.doctor.findings import Finding
from anybatch.doctor.lint.rules import accumulation, caching, failures, fits, losses, order, throughput
from anybatch.doctor.lint.uses import Reading

Rule = Callable[[Reading], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    *order.RULES,
    *caching.RULES,
    *throughput.RULES,
    *accumulation.RULES,
    *losses.RULES,
    *failures.RULES,
    *fits.RULES,
)

__all__ = ["RULES", "Rule"]
