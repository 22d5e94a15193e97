"""Which sizes to try, and what to make of them: plain numbers in, plain numbers out."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum

from anybatch.memory import PeakModel, Peaks, Probe, fitted
from anybatch.train.split import largest_part

FIRST_ROWS = 8
"""A first look at next to nothing says what must not be tried; it is not counted as a probe."""
GROWTH_FACTOR = 16
NOISE_BYTES = 48 << 20
"""An allocator keeps tens of MB to itself: a smaller rise from size to size tells nothing."""
DOUBT_BYTES = 8 << 20
"""What two measurements of the same may differ by: the slope may be so much steeper than it looks."""
MOST_ASCENDING = 2
MOST_PROBES = 4
"""Two that ascend, one in one part and one to verify, unless one fails."""
TRUSTED_FACTOR = 2
TELLING_FACTOR = 1.5
"""A size so much larger than the last one says something about the slope too."""
MOST_LOOKS = 4
"""A look may lead to another size, and one that fails is no probe."""
MARGIN = 0.05


class Split(Enum):
    """Whether an update is made of one part, of several, or of as many as the batch has."""

    ONE = "one part"
    SEVERAL = "several parts"
    ALL = "all parts"


Measure = Callable[[int, Split], int | None]
"""From rows and kind to the rise of memory in bytes; None if it ran out."""


@dataclass(slots=True)
class Search:
    """Probes a few sizes, ascending, and never one that is expected not to fit."""

    measure: Measure
    batch_size: int
    free_bytes: int
    """What memory may rise by."""
    start: Probe
    """What an update of one sample at a time takes: everything that does not grow with the samples."""
    whole_start: Probe
    """The same in one part, without sums."""
    most_probes: int = MOST_PROBES
    """When so many were made, the chosen part is believed as it is."""
    sums_grow: bool = False
    """Adding up takes more for every sample: what one part takes is then seen before several of its size,
    because an allocator that keeps what it has had would hide it behind them."""
    small: list[Probe] = field(default_factory=list)
    probes: list[tuple[Split, Probe]] = field(default_factory=list)
    verified: dict[int, int | None] = field(default_factory=dict)
    """By part, what an update in all its parts raised memory by, looked at because it had been chosen."""
    failed_at: int | None = None

    def run(self) -> Peaks:
        """Return the model of the peak, from at most four probes."""
        rows = self._first_look()
        while rows is not None:
            if self.sums_grow and len(self._of(Split.SEVERAL)) == MOST_ASCENDING - 1:
                self._probe_one_part(rows)
            if not self._probe(rows, Split.SEVERAL):
                break
            rows = self._next()
        several = self._fitted()
        return self._verified(Peaks(self._in_one_part(several), several))

    @property
    def _half(self) -> int:
        """The largest part of several."""
        return -(-self.batch_size // 2)

    def _of(self, kind: Split) -> list[Probe]:
        return [probe for one, probe in self.probes if one is kind]

    def _in_several(self) -> list[Probe]:
        """Return everything that was seen of updates in several parts, ascending."""
        return [self.start, *self.small, *self._of(Split.SEVERAL)]

    def _first_look(self) -> int | None:
        """Look at a few samples, and return the first size worth a probe."""
        rows = largest_part(self.batch_size, min(FIRST_ROWS, self._half))
        rise = self._rise(rows, Split.SEVERAL)
        if rise is None:
            return None
        self.small.append(Probe(rows, rise))
        return self._next()

    def _verified(self, peaks: Peaks) -> Peaks:
        """Return peaks after a look at the size they lead to, if it lies far beyond what was seen.

        One of several parts is looked at in any case, as long as probes are left.
        """
        for _ in range(MOST_LOOKS):
            part = chosen(peaks, self.batch_size, self.free_bytes)
            if part is None:
                break
            kind = Split.ONE if part >= self.batch_size else Split.SEVERAL
            seen, can_look = self._seen(kind), kind is Split.SEVERAL and self._can_look_at(part)
            if not trusted(part, seen) or (can_look and part >= TELLING_FACTOR * seen):
                peaks = self._looked_at(self._sure(part, kind), kind, peaks)
            elif can_look:
                peaks = self._raised_at(part, peaks)
            else:
                larger = self._next_larger(part, peaks.split) if kind is Split.SEVERAL else None
                if larger is None:
                    break
                peaks = self._raised_at(larger, peaks)
        return peaks

    def _next_larger(self, part: int, line: PeakModel) -> int | None:
        """Return the part of one part fewer, if only the room for a surprise has kept it from being chosen.

        There is no surprise in what was looked at; and with one it would still be below the limit, only
        not below the margin.
        """
        fewer = -(-self.batch_size // part) - 1
        larger = -(-self.batch_size // fewer) if fewer > 1 else None
        if larger is None or not self._can_look_at(larger):
            return None
        fits = line.predicted_peak_bytes(larger) <= int(self.free_bytes * (1 - MARGIN))
        return larger if fits and line.fits(larger, self.free_bytes) else None

    def _can_look_at(self, part: int) -> bool:
        known = self.verified.keys() | {probe.samples for probe in self._in_several()}
        return part not in known and len(self.probes) + len(self.verified) < self.most_probes

    def _raised_at(self, part: int, peaks: Peaks) -> Peaks:
        """Return peaks whose line is nowhere below what the chosen part takes.

        A line through other sizes may be: at 256 samples an LSTM took 20 MB more than at 248.
        """
        rise = self.verified[part] = self._rise(part, Split.ALL)
        if rise is None:
            return self._failing_at(part, peaks)
        line = peaks.split
        fixed = line.fixed_bytes + max(0, rise - line.predicted_peak_bytes(part))
        raised = PeakModel(fixed, line.bytes_per_sample, max(line.seen_samples, part))
        return replace(peaks, split=raised)

    def _failing_at(self, part: int, peaks: Peaks) -> Peaks:
        return Peaks(
            peaks.whole.scaled_to_fail_at(part, self.free_bytes),
            peaks.split.scaled_to_fail_at(part, self.free_bytes),
        )

    def _sure(self, part: int, kind: Split) -> int:
        """Return the part, or a smaller one if its peak might be above the limit: workspaces hide a slope.

        That may take one probe more, so it is done while there is one to spare.
        """
        if kind is Split.ONE or not self.small or len(self.probes) > MOST_ASCENDING:
            return part
        sure = largest_part(self.batch_size, max(self._seen(kind) + 1, self._doubted(ceiling=part)))
        return sure if sure > self._seen(kind) else part

    def _doubted(self, *, ceiling: int) -> int:
        """Return the largest size that fits even if the slope is as steep as it may be."""
        before, last = self._in_several()[-2:]
        risen = max(0, last.peak_bytes - before.peak_bytes)
        steepest = (risen + DOUBT_BYTES) / (last.samples - before.samples)
        doubted = PeakModel(last.peak_bytes - steepest * last.samples, steepest)
        return doubted.largest_under(int(self.free_bytes * (1 - MARGIN)), ceiling=ceiling)

    def _seen(self, kind: Split) -> int:
        """Return the largest part of one kind that was tried: adding up may cost more for every sample."""
        found = self._in_several() if kind is Split.SEVERAL else self._of(Split.ONE)
        return max((probe.samples for probe in found), default=0)

    def _looked_at(self, part: int, kind: Split, peaks: Peaks) -> Peaks:
        if not self._probe(part, kind):
            return self._failing_at(part, peaks)
        if kind is Split.SEVERAL:
            return replace(peaks, split=self._fitted())
        whole = self._in_one_part_through(peaks.split)
        return Peaks(whole, self._as_steep_as(whole, peaks.split))

    def _as_steep_as(self, whole: PeakModel, several: PeakModel) -> PeakModel:
        """Return several parts with the slope of the whole batch, which was seen over more samples.

        The line still passes through the largest size seen in several parts.
        """
        steeper = whole.bytes_per_sample - several.bytes_per_sample
        if steeper <= 0:
            return several
        largest = self._in_several()[-1].samples
        fixed = max(0.0, several.fixed_bytes - steeper * largest)
        return PeakModel(fixed, whole.bytes_per_sample, several.seen_samples)

    def _in_one_part(self, several: PeakModel) -> PeakModel:
        """Return the model without sums: one probe more, where the whole batch has a chance to fit."""
        if not self.small:
            return several
        largest = self._in_several()[-1].samples
        # without sums it takes less; but whether so much less is not found out beyond the limit
        near = several.fits(self.batch_size, self.free_bytes) and trusted(self.batch_size, largest)
        if near or not self._of(Split.ONE):
            self._probe_one_part(self.batch_size if near else largest)
        return self._in_one_part_through(several) if self._of(Split.ONE) else several

    def _probe_one_part(self, rows: int) -> None:
        """Look at so many rows in one part, where the whole batch has a chance to fit."""
        if self._fitted().bytes_per_sample * self.batch_size <= self.free_bytes:
            self._probe(rows, Split.ONE)

    def _in_one_part_through(self, several: PeakModel) -> PeakModel:
        """Return the line through what was seen in one part; through one point, with the slope of several."""
        found = self._of(Split.ONE)[-2:]
        if len(found) == 2:
            return fitted(found)
        only = found[0]
        slope, apart = several.bytes_per_sample, only.samples - self.whole_start.samples
        if apart:
            # adding up may take more for every sample, as it does in an embedding
            slope = max(0.0, min(slope, (only.peak_bytes - self.whole_start.peak_bytes) / apart))
        return PeakModel(only.peak_bytes - slope * only.samples, slope, only.samples)

    def _next(self) -> int | None:
        """Return the next size worth a probe; None when the slope is known, or nothing larger would fit."""
        before, last = self._in_several()[-2:]
        rows, risen = last.samples, last.peak_bytes - before.peak_bytes
        ascended = len(self._of(Split.SEVERAL)) == MOST_ASCENDING
        if rows >= self._half or ascended or rows <= before.samples:
            return None
        doubted = self._doubted(ceiling=min(self._half, rows * GROWTH_FACTOR))
        fitting = largest_part(self.batch_size, max(1, doubted))
        known = risen >= NOISE_BYTES and fitting < 2 * rows
        return fitting if fitting > rows and not known else None

    def _probe(self, rows: int, kind: Split) -> bool:
        rise = self._rise(rows, kind)
        if rise is not None:
            self.probes.append((kind, Probe(rows, rise)))
        return rise is not None

    def _rise(self, rows: int, kind: Split) -> int | None:
        rise = self.measure(rows, kind)
        if rise is None:
            self.failed_at = rows if self.failed_at is None else min(rows, self.failed_at)
        return rise

    def _fitted(self) -> PeakModel:
        """Return the line through the two largest sizes: smaller ones drown in what the allocator keeps."""
        model = fitted(self._in_several()[-2:])
        return model if self.failed_at is None else model.scaled_to_fail_at(self.failed_at, self.free_bytes)


def trusted(part: int, seen_samples: int) -> bool:
    """Return whether a part is near enough to what was tried for its peak to be believed."""
    return part <= TRUSTED_FACTOR * seen_samples


def chosen(peaks: Peaks, batch_size: int, free_bytes: int) -> int | None:
    """Return the largest even part that fits with a margin; None if not even one sample does.

    >>> line = PeakModel(fixed_bytes=100.0, bytes_per_sample=10.0)
    >>> (
    ...     chosen(Peaks(line, line), 100, 2000),
    ...     chosen(Peaks(line, line), 100, 800),
    ...     chosen(Peaks(line, line), 9, 50),
    ... )
    (100, 50, None)
    """
    part = peaks.part_under(int(free_bytes * (1 - MARGIN)), batch_size)
    return largest_part(batch_size, part) if part else None
