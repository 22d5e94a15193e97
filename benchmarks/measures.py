"""Which figure a table is about, how it reads, and which way is better."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from benchmarks.job import Answer
from benchmarks.registry import Case, Measured, Unit

RATES: Mapping[Unit, str] = {"records": "records/s", "bytes": "GB/s", "shards": "shards/s"}


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of an answer; `of` also gets how much work it was, in the unit of the case."""

    title: Callable[[Unit], str]
    better: Literal["more", "less"]
    of: Callable[[Answer, int], float | None]
    words: Callable[[float, Unit], str]


def measure_of(case: Case) -> Measure:
    """Return what the case measures."""
    return MEASURES[case.measured]


def times_better(ours: float | None, theirs: float | None, measure: Measure) -> float | None:
    """Return how many times faster or smaller ours is; below 1 it is the slower or larger one."""
    if not ours or not theirs:
        return None
    return ours / theirs if measure.better == "more" else theirs / ours


def rate_in_words(rate: float, unit: Unit) -> str:
    """Return a rate in the words of `RATES`: `1.25`, `1,590k`, `640`."""
    if unit == "bytes":
        return f"{rate / 1e9:,.2f}"
    return f"{rate / 1e3:,.0f}k" if rate >= 1e5 else f"{rate:,.0f}"


def seconds_in_words(seconds: float, _: Unit = "records") -> str:
    """Return a time: `1.25 s`, `0.8 ms`."""
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1e3:.1f} ms"


def mebibytes_in_words(size_bytes: float, _: Unit = "records") -> str:
    """Return a size in MiB: `12.5`."""
    return f"{size_bytes / (1 << 20):,.1f}"


def difference_in_words(difference: float, _: Unit = "records") -> str:
    """Return a relative difference: `0`, `3.1e-07`."""
    return f"{difference:.1e}" if difference else "0"


def _rate(answer: Answer, amount: int) -> float | None:
    return amount / answer.seconds if answer.survived and answer.seconds else None


def _first_batch(answer: Answer, _: int) -> float | None:
    return answer.first_batch_seconds


RATE = Measure(lambda unit: RATES[unit], "more", _rate, rate_in_words)

MEASURES: Mapping[Measured, Measure] = {
    "rate": RATE,
    "survival": RATE,
    "first_batch": Measure(lambda _: "seconds to the first batch", "less", _first_batch, seconds_in_words),
    "resume": Measure(lambda _: "seconds to the next batch", "less", _first_batch, seconds_in_words),
    "growth": Measure(
        lambda _: "MiB above the imports",
        "less",
        lambda answer, _: answer.growth_bytes,
        mebibytes_in_words,
    ),
    "difference": Measure(
        lambda _: "relative difference of the weights",
        "less",
        lambda answer, _: answer.weights_difference,
        difference_in_words,
    ),
}
