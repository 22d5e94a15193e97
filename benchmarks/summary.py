"""From answers to a verdict: plain values in, plain values out."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median

from benchmarks.datasets import Written
from benchmarks.registry import Case, Role, Unit
from benchmarks.rounds import Standing


@dataclass(frozen=True, slots=True)
class Row:
    """One contender's result in one case. Rates are in units of the case per second."""

    contender: str
    role: Role
    note: str
    failure: str
    difference: str
    proves: str
    rounds: int
    unit: Unit
    median_seconds: float | None = None
    rate: float | None = None
    slowest_rate: float | None = None
    fastest_rate: float | None = None
    ratio_to_anybatch: float | None = None
    cpu_seconds: float | None = None
    first_batch_seconds: float | None = None
    read_bytes: float | None = None
    peak_anonymous_bytes: float | None = None
    peak_growth_bytes: float | None = None


def amount_of(case: Case, written: Written) -> int:
    """Return how much work the case is, in its unit."""
    amounts: Mapping[Unit, int] = {
        "records": int(written.truth["records"]),
        "bytes": written.file_bytes,
        "shards": len(written.shards),
    }
    return amounts[case.unit]


def summarise(case: Case, standings: list[Standing], amount: int) -> list[Row]:
    """Return one row per contender, in the order of the case."""
    measure = median_seconds_of_ours(standings)
    return [_row(case, standing, amount, measure) for standing in standings]


def median_seconds_of_ours(standings: list[Standing]) -> float | None:
    """Return the time of the first contender that is ours: what the others are compared with."""
    ours = next((standing for standing in standings if standing.contender.role == "ours"), None)
    return median(_seconds(ours)) if ours and ours.timed and not ours.failed else None


def exit_code(rows: Iterable[Row]) -> int:
    """Return 1 if values differ or anybatch itself failed. A peer that is not installed is no fault."""
    return int(any(row.difference or (row.failure and row.role == "ours") for row in rows))


def _row(case: Case, standing: Standing, amount: int, measure: float | None) -> Row:
    contender = standing.contender
    plain = Row(
        contender.name,
        contender.role,
        contender.note,
        standing.failure,
        standing.difference,
        contender.proves,
        len(standing.timed),
        case.unit,
    )
    return plain if standing.failed or not standing.timed else _measured(plain, standing, amount, measure)


def _measured(plain: Row, standing: Standing, amount: int, measure: float | None) -> Row:
    seconds, timed = _seconds(standing), standing.timed
    middle = median(seconds)
    return replace(
        plain,
        median_seconds=middle,
        rate=amount / middle,
        slowest_rate=amount / max(seconds),
        fastest_rate=amount / min(seconds),
        ratio_to_anybatch=measure / middle if measure else None,
        cpu_seconds=median(answer.cpu_seconds for answer in timed),
        first_batch_seconds=_over(median, (answer.first_batch_seconds for answer in timed)),
        read_bytes=_over(median, (answer.read_bytes for answer in timed)),
        peak_anonymous_bytes=_over(max, (answer.peak_anonymous_bytes for answer in timed)),
        peak_growth_bytes=_over(max, (answer.growth_bytes for answer in timed)),
    )


def _seconds(standing: Standing) -> list[float]:
    return [answer.seconds for answer in standing.timed]


def _over(reduce: Callable[[list[float]], float], values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return reduce(known) if known else None
