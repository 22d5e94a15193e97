"""The columns of a table, by what it measures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.measures import (
    MEASURES,
    difference_in_words,
    mebibytes_in_words,
    rate_in_words,
    seconds_in_words,
)
from benchmarks.registry import Measured
from benchmarks.summary import Row


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, and what a row has under it."""

    heading: str
    cell: Callable[[Row], str]


def _or_dash(value: float | None, words: Callable[[float], str]) -> str:
    return "-" if value is None else words(value)


def _in_words(row: Row, value: float | None) -> str:
    return _or_dash(value, lambda known: MEASURES[row.measured].words(known, row.unit))


def _spread(row: Row) -> str:
    return f"{_in_words(row, row.lowest)} .. {_in_words(row, row.highest)}"


MEDIAN = Column("median", lambda row: _in_words(row, row.value))
SPREAD = Column("lowest .. highest", _spread)
RATIO = Column("anybatch is", lambda row: _or_dash(row.anybatch_is, "{:,.2f}x".format))
FIRST_BATCH = Column("first batch", lambda row: _or_dash(row.first_batch_seconds, seconds_in_words))
CPU = Column("cpu", lambda row: _or_dash(row.cpu_seconds, "{:,.2f} s".format))
READ = Column("read", lambda row: _or_dash(row.read_bytes, mebibytes_in_words))
PEAK = Column("peak", lambda row: _or_dash(row.peak_anonymous_bytes, mebibytes_in_words))
GROWTH = Column("growth", lambda row: _or_dash(row.peak_growth_bytes, mebibytes_in_words))
STATE = Column("bytes to keep", lambda row: _or_dash(row.state_bytes, "{:,.0f}".format))
RATE = Column("records/s", lambda row: _or_dash(row.rate, lambda rate: rate_in_words(rate, "records")))
LATER = Column("then", lambda row: _or_dash(row.later_rate, lambda rate: rate_in_words(rate, "records")))
ENDED = Column("ended", lambda row: row.ended)
UPDATES = Column("updates", lambda row: _or_dash(row.updates, "{:.0f}".format))
OFF_BY = Column("weights off by", lambda row: _or_dash(row.weights_difference, difference_in_words))

COLUMNS: Mapping[Measured, tuple[Column, ...]] = {
    "rate": (MEDIAN, SPREAD, RATIO, FIRST_BATCH, CPU, READ, PEAK, GROWTH),
    "first_batch": (MEDIAN, SPREAD, RATIO, CPU, READ, PEAK, GROWTH),
    "resume": (MEDIAN, SPREAD, RATIO, STATE, CPU, READ, PEAK, GROWTH),
    "growth": (MEDIAN, SPREAD, RATIO, RATE, PEAK),
    "difference": (MEDIAN, SPREAD, UPDATES),
    "survival": (ENDED, OFF_BY, UPDATES, MEDIAN, SPREAD, RATIO, FIRST_BATCH, LATER, PEAK),
}
