"""How the peak grows with the part: a fixed share and one per sample, from a few measured sizes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor

SURPRISE = 1.15
"""What a size that was never tried may take beyond what its neighbours say: up to 20 % were measured."""
EVERYWHERE = 2**31


@dataclass(frozen=True, slots=True)
class Probe:
    """What one size was seen to need."""

    samples: int
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class PeakModel:
    """Peak(b) = fixed + per sample x b.

    >>> PeakModel(fixed_bytes=100, bytes_per_sample=7.5).largest_under(1000)
    120
    """

    fixed_bytes: float
    bytes_per_sample: float
    seen_samples: int = EVERYWHERE
    """The largest size that was tried; beyond it room is left for a surprise."""

    def predicted_peak_bytes(self, samples: int) -> int:
        """Return the peak at one size, rounded up."""
        return ceil(self.fixed_bytes + self.bytes_per_sample * samples)

    def fits(self, samples: int, limit_bytes: int) -> bool:
        """Return whether a size is safe to try under a limit."""
        surprise = 1.0 if samples <= self.seen_samples else SURPRISE
        return self.predicted_peak_bytes(samples) * surprise <= limit_bytes

    def largest_under(self, limit_bytes: int, *, ceiling: int = EVERYWHERE) -> int:
        """Return the largest size that fits under the limit; 0 if not even one sample does."""
        if ceiling > self.seen_samples:
            beyond = self._largest_on_the_line(int(limit_bytes / SURPRISE), ceiling)
            if beyond > self.seen_samples:
                return beyond
        return self._largest_on_the_line(limit_bytes, min(ceiling, self.seen_samples))

    def _largest_on_the_line(self, limit_bytes: int, ceiling: int) -> int:
        if self.predicted_peak_bytes(1) > limit_bytes:
            return 0
        if self.predicted_peak_bytes(ceiling) <= limit_bytes:
            return ceiling
        guess = min(ceiling, floor((limit_bytes - self.fixed_bytes) / self.bytes_per_sample) + 1)
        # the division can be one off in either direction
        while self.predicted_peak_bytes(guess) > limit_bytes:
            guess -= 1
        return guess

    def scaled_to_fail_at(self, failed_at: int, limit_bytes: int) -> "PeakModel":
        """Return the model corrected by a failure: at that size the peak was above the limit after all."""
        if self.predicted_peak_bytes(failed_at) > limit_bytes:
            return self
        above = limit_bytes + 1 - self.fixed_bytes
        return replace(self, bytes_per_sample=max(self.bytes_per_sample, above / failed_at))


@dataclass(frozen=True, slots=True)
class Peaks:
    """The peak of an update made in one part, and of one made in several, which keeps sums besides."""

    whole: PeakModel
    split: PeakModel
    least_split_bytes: int = 0
    """What an update in several parts takes however small they are, where sums grow with the batch."""
    tried_under_bytes: int = 0
    """Under limits up to this no larger part is to be chosen than was tried."""

    @property
    def seen_samples(self) -> int:
        """The largest part that was tried, in one part or as one of several."""
        return max(self.whole.seen_samples, self.split.seen_samples)

    def part_under(self, limit_bytes: int, batch_size: int) -> int:
        """Return the largest part that fits: the whole batch if it does, else one of several; 0 for none."""
        tried = limit_bytes <= self.tried_under_bytes
        if self.whole.fits(batch_size, limit_bytes) and not (tried and self.whole.seen_samples < batch_size):
            return batch_size
        if self.least_split_bytes > limit_bytes:
            return 0
        ceiling = min(batch_size - 1, self.split.seen_samples) if tried else batch_size - 1
        return self.split.largest_under(limit_bytes, ceiling=max(1, ceiling))

    def predicted_peak_bytes(self, part: int, batch_size: int) -> int:
        """Return the peak of an update of the batch in parts of at most that size."""
        if part >= batch_size:
            return self.whole.predicted_peak_bytes(part)
        return max(self.least_split_bytes, self.split.predicted_peak_bytes(part))


def fitted(probes: Sequence[Probe]) -> PeakModel:
    """Return the line of least squares through the probes, raised until none of them lies above it.

    One probe says nothing about the slope: the model is then constant. A line that falls is noise, and is
    taken as constant too.

    >>> fitted([Probe(32, 420), Probe(64, 740)])
    PeakModel(fixed_bytes=100.0, bytes_per_sample=10.0, seen_samples=64)
    """
    mean_samples = sum(probe.samples for probe in probes) / len(probes)
    mean_bytes = sum(probe.peak_bytes for probe in probes) / len(probes)
    spread = sum((probe.samples - mean_samples) ** 2 for probe in probes)
    together = sum((probe.samples - mean_samples) * (probe.peak_bytes - mean_bytes) for probe in probes)
    slope = max(0.0, together / spread) if spread else 0.0
    fixed = max(probe.peak_bytes - slope * probe.samples for probe in probes)
    return PeakModel(fixed, slope, max(probe.samples for probe in probes))
