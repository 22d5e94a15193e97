"""A plan that rests on probes: what uses the bytes, and what could be done instead."""

from dataclasses import dataclass, field

from anybatch.train.plan_alternatives import Alternative
from anybatch.train.plan_uses import Use
from anybatch.train.plans import Plan
from anybatch.units import size


@dataclass(frozen=True, slots=True)
class MeasuredPlan(Plan):
    """A plan with the parts of its peak, which come to the whole of it, and other ways with their prices.

    >>> uses = (Use("process before", 300 << 20, "measured"), Use("weights", 4 << 20, "counted"))
    >>> ways = (Alternative("4 parts of 16", 302 << 20, "the same update in more steps"),)
    >>> print(MeasuredPlan(64, 32, 2, 304 << 20, 1 << 30, uses=uses, alternatives=ways))
    batch           64 = 2 x 32
    predicted peak  304 MiB
    limit           1 GiB
    exact           yes
    what uses it
      process before  300 MiB  measured
      weights           4 MiB  counted
    what could be done instead
      4 parts of 16  302 MiB  the same update in more steps
    """

    uses: tuple[Use, ...] = field(default=())
    alternatives: tuple[Alternative, ...] = field(default=())
    measured: tuple[tuple[int, int], ...] = field(default=())
    """The peaks that batches in parts of some sizes had, in bytes, where they were timed."""

    def __str__(self) -> str:
        uses = [(use.name, size(use.n_bytes), use.known) for use in self.uses]
        ways = [(way.name, size(way.predicted_peak_bytes), way.price) for way in self.alternatives]
        # not super(): a dataclass with slots is made anew, and the word would mean the old one
        told = [Plan.__str__(self)]
        return "\n".join(told + _table("what uses it", uses) + _table("what could be done instead", ways))


def _table(title: str, rows: list[tuple[str, str, str]]) -> list[str]:
    if not rows:
        return []
    name_width, size_width = (max(len(row[at]) for row in rows) for at in (0, 1))
    return [title, *(f"  {name:<{name_width}}  {n:>{size_width}}  {note}" for name, n, note in rows)]
