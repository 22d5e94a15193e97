"""From answers to figures: plain values in, plain values out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from anybatch.cli.bench.job import Answer, Contender, Trial
from anybatch.cli.bench.rounds import Answers


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of the rounds, and how far they went apart."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the spread of some values."""
        return cls(median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the comparison."""

    name: str
    unit: str
    by_contender: dict[str, Spread | None]
    """None where a contender failed."""

    @property
    def ratio(self) -> float | None:
        """How many times better anybatch is than tf.data; below 1 it is worse."""
        ours, theirs = (self.by_contender.get(one) for one in (Contender.OURS, Contender.TF_DATA))
        if ours is None or theirs is None or not ours.median or not theirs.median:
            return None
        better = ours.median / theirs.median
        return better if self.unit == RATE else 1 / better


RATE = "records/s"
SECONDS = "seconds"
BYTES = "bytes"

_Measure = Callable[[Answer], float]
_MEASURES: tuple[tuple[str, str, Trial, _Measure], ...] = (
    ("in file order", RATE, Trial.IN_ORDER, lambda answer: answer.records / answer.seconds),
    ("shuffled", RATE, Trial.SHUFFLED, lambda answer: answer.records / answer.seconds),
    ("first batch", SECONDS, Trial.IN_ORDER, lambda answer: answer.first_batch_seconds),
    ("first batch, shuffled", SECONDS, Trial.SHUFFLED, lambda answer: answer.first_batch_seconds),
    ("peak memory", BYTES, Trial.IN_ORDER, lambda answer: answer.peak_bytes),
    ("peak memory, shuffled", BYTES, Trial.SHUFFLED, lambda answer: answer.peak_bytes),
    ("continue in mid-epoch", SECONDS, Trial.CONTINUED, lambda answer: answer.seconds),
    ("saved state", BYTES, Trial.CONTINUED, lambda answer: answer.state_bytes),
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everybody's figures, and what speaks against them."""

    figures: list[Figure]
    failures: dict[tuple[Contender, Trial], str]
    unequal: list[Trial]
    """The trials in which the contenders did not read the same records."""

    def failed(self, contender: Contender) -> bool:
        """Whether a contender failed in anything."""
        return any(one is contender for one, _ in self.failures)


def compared(answers: Answers) -> Comparison:
    """Return what the answers of all rounds amount to."""
    contenders = list(dict.fromkeys(contender for contender, _ in answers))
    figures = [
        Figure(name, unit, {one: _spread(answers[one, trial], measure) for one in contenders})
        for name, unit, trial, measure in _MEASURES
    ]
    return Comparison(
        figures, _failures(answers), [trial for trial in Trial if len(_proofs(answers, trial)) > 1]
    )


def _failures(answers: Answers) -> dict[tuple[Contender, Trial], str]:
    last = {where: answered[-1].failure for where, answered in answers.items() if answered}
    return {where: " ".join(why.split()) for where, why in last.items() if why}


def _proofs(answers: Answers, trial: Trial) -> set[str]:
    asked = [answered for (_, tried), answered in answers.items() if tried is trial]
    return {answer.proof for answered in asked for answer in answered if answer.proof}


def _spread(answered: Sequence[Answer], measure: _Measure) -> Spread | None:
    if not answered or answered[-1].failure:
        return None
    return Spread.of([measure(answer) for answer in answered])
