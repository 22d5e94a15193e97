"""From answers to a verdict: plain values in, plain values out."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median

from benchmarks.datasets import Written
from benchmarks.job import NOT_HERE, Answer
from benchmarks.measures import RATE, Measure, measure_of, times_better
from benchmarks.registry import Case, Measured, Role, Unit
from benchmarks.rounds import Standing

ROUNDING = 1e-4
"""Weights that differ by more, relative to their size, are not those of the same updates in another order."""


@dataclass(frozen=True, slots=True)
class Row:
    """One contender's result in one case: `value` is what the case measures, the median of all rounds."""

    contender: str
    role: Role
    note: str
    failure: str
    difference: str
    proves: str
    rounds: int
    unit: Unit
    measured: Measured
    value: float | None = None
    lowest: float | None = None
    highest: float | None = None
    anybatch_is: float | None = None  # so many times faster or smaller
    median_seconds: float | None = None
    rate: float | None = None
    cpu_seconds: float | None = None
    first_batch_seconds: float | None = None
    later_rate: float | None = None
    read_bytes: float | None = None
    peak_anonymous_bytes: float | None = None
    peak_growth_bytes: float | None = None
    state_bytes: float | None = None
    weights_difference: float | None = None
    updates: float | None = None
    ended: str = ""


def amount_of(case: Case, written: Written) -> int:
    """Return how much work the case is, in its unit."""
    amounts: Mapping[Unit, int] = {
        "records": int(written.truth.get("records", 0)),
        "bytes": written.file_bytes,
        "shards": len(written.shards),
    }
    return amounts[case.unit]


def summarise(case: Case, standings: list[Standing], amount: int) -> list[Row]:
    """Return one row per contender, in the order of the case."""
    measure = measure_of(case)
    ours = value_of_ours(standings, measure, amount)
    rows = (
        _row(case, standing, measure, amount_of(case, standing.fewer) if standing.fewer else amount)
        for standing in standings
    )
    return [replace(row, anybatch_is=times_better(ours, row.value, measure)) for row in rows]


def value_of_ours(standings: list[Standing], measure: Measure, amount: int) -> float | None:
    """Return the figure of the first contender that is ours: what the others are compared with."""
    ours = next((standing for standing in standings if standing.contender.role == "ours"), None)
    return None if ours is None or ours.failed else _median_of(ours.timed, measure, amount)


def exit_code(rows: Iterable[Row]) -> int:
    """Return 1 if values differ, anybatch itself failed, or its weights are not those of whole batches.

    A peer that is not installed is no fault, nor is a machine that has no memory groups or too few cores.
    """
    return int(any(row.difference or (row.role == "ours" and _at_fault(row)) for row in rows))


def _at_fault(row: Row) -> bool:
    failed = bool(row.failure) and NOT_HERE not in row.failure
    return failed or (row.weights_difference or 0.0) > ROUNDING


def _row(case: Case, standing: Standing, measure: Measure, amount: int) -> Row:
    contender = standing.contender
    plain = Row(
        contender.name,
        contender.role,
        _note(standing),
        standing.failure,
        standing.difference,
        contender.proves,
        len(standing.timed),
        case.unit,
        case.measured,
    )
    return (
        plain if standing.failed or not standing.timed else _measured(plain, standing.timed, measure, amount)
    )


def _note(standing: Standing) -> str:
    note, fewer = standing.contender.note, standing.fewer
    return f"{note}; on {fewer.truth['records']:,} records" if fewer else note


def _measured(plain: Row, timed: list[Answer], measure: Measure, amount: int) -> Row:
    values = [measure.of(answer, amount) for answer in timed]
    return replace(
        plain,
        value=_over(median, values),
        lowest=_over(min, values),
        highest=_over(max, values),
        median_seconds=median(answer.seconds for answer in timed),
        rate=_median_of(timed, RATE, amount) or None,
        cpu_seconds=median(answer.cpu_seconds for answer in timed),
        first_batch_seconds=_over(median, (answer.first_batch_seconds for answer in timed)),
        later_rate=_over(median, (answer.later_rate for answer in timed)),
        read_bytes=_over(median, (answer.read_bytes for answer in timed)),
        peak_anonymous_bytes=_over(max, (answer.peak_anonymous_bytes for answer in timed)),
        peak_growth_bytes=_over(max, (answer.growth_bytes for answer in timed)),
        state_bytes=_over(max, (answer.state_bytes for answer in timed)),
        weights_difference=_over(max, (answer.weights_difference for answer in timed)),
        updates=_over(median, (answer.updates for answer in timed)),
        ended=_worst_end(timed),
    )


def _worst_end(timed: list[Answer]) -> str:
    """Return how the first round ended that ended badly, else how all did."""
    return next((answer.ended for answer in timed if not answer.survived), timed[0].ended)


def _median_of(timed: list[Answer], measure: Measure, amount: int) -> float | None:
    return _over(median, (measure.of(answer, amount) for answer in timed))


def _over(reduce: Callable[[list[float]], float], values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return reduce(known) if known else None
