"""A comparison as people and programs read it."""

from dataclasses import asdict

from anybatch.cli.bench.figures import RATE, SECONDS, Comparison, Figure, Spread
from anybatch.cli.report import print_table, say
from anybatch.units import size


def document(found: Comparison) -> dict[str, object]:
    """Return everything, for programs."""
    return {
        "figures": [{**asdict(figure), "ratio": figure.ratio} for figure in found.figures],
        "failures": [
            {"contender": contender, "trial": trial, "why": why}
            for (contender, trial), why in found.failures.items()
        ],
        "same_records": not found.unequal,
    }


def show(found: Comparison) -> None:
    """Print the table, and what went wrong."""
    names = list(found.figures[0].by_contender)
    headers = ("", *names, "ratio") if len(names) > 1 else ("", *names)
    say()
    print_table("", headers, [_row(figure)[: len(headers)] for figure in found.figures])
    say()
    for (contender, trial), why in found.failures.items():
        say(f"{contender} failed, {trial}: {why}")
    for trial in found.unequal:
        say(f"{trial}: the two did not read the same records, so these figures say nothing")


def _row(figure: Figure) -> tuple[str, ...]:
    values = (_worded(spread, figure.unit) for spread in figure.by_contender.values())
    return (figure.name, *values, "" if figure.ratio is None else f"{figure.ratio:.2g}x")


def _worded(spread: Spread | None, unit: str) -> str:
    if spread is None:
        return "failed"
    if unit == RATE:
        return f"{spread.median:,.0f} {RATE}"
    return f"{spread.median * 1000:.3g} ms" if unit == SECONDS else size(round(spread.median))
