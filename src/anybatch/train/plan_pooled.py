"""Which sizes to try where an allocator keeps all it has had, in pieces that a larger size cannot use.

TensorFlow's for oneDNN does: 256 rows of a convolution found nothing of use in what 127 had left, and memory
rose by both. But it counts to the byte what tensors take. So small sizes, which leave little behind, say what
a sample takes, and of the large ones only that is tried which was chosen.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from anybatch.memory import PeakModel, Peaks, Probe, fitted
from anybatch.train.plan_search import (
    DOUBT_BYTES,
    GROWTH_FACTOR,
    MARGIN,
    MOST_ASCENDING,
    MOST_LOOKS,
    Split,
)
from anybatch.train.probe import Taken
from anybatch.train.split import part_sizes

_SMALL_SHARE = 16
"""Small sizes may leave behind a sixteenth of what is free."""
_WORTH_A_TRIAL = 2
_TRIED_BEFORE = 2
"""So many samples were tried while everything was traced."""
_BETWEEN_PIECES = 1.25
"""Tensors come and go in another order every time: in the third training of a convolution one found no room
where it always had, and memory rose by a sixth of what was used."""


Trial = Callable[[int, Split], Taken | None]
"""From rows and kind to what was taken; None if it ran out."""


@dataclass(slots=True)
class PooledSearch:
    """Tries small sizes, ascending, and then what was chosen by them."""

    trial: Trial
    batch_size: int
    free_bytes: int
    """What memory may rise by."""
    start: Taken
    """What an update of one sample at a time took."""
    whole_start: Taken
    """The same in one part, without sums."""
    sums_bytes: int = 0
    """What the sums of several parts take, however small they are, where they grow with the batch."""
    copy_bytes: int = 0
    """What will be free besides when nothing is tried any more."""
    verified: dict[int, int | None] = field(default_factory=dict)
    """By part, what the batch in all its parts raised memory by."""
    _several: list[Probe] = field(init=False)
    _held_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self._several = [Probe(1, 0)]
        self._held_bytes = self.start.rise_bytes

    def run(self) -> Peaks:
        """Return the model of the peak, from at most three small sizes and, unless one fails, one large."""
        self._ascend()
        lines = self._lines()
        ceiling = self.batch_size
        for _ in range(MOST_LOOKS):
            part = self._chosen(lines, ceiling)
            if part is None:
                break
            rise = self._tried(part)
            if rise is not None:
                return self._through(part, rise, lines)
            ceiling = part * 2 // 3
        return self._failing_beyond(ceiling, lines)

    def _ascend(self) -> None:
        """Try a few samples, and then the largest sizes that leave next to nothing behind."""
        rows: int | None = min(_TRIED_BEFORE, self._half)
        while rows is not None and len(self._several) <= 1 + MOST_ASCENDING:
            taken = self._taken(rows, Split.SEVERAL)
            if taken is None:
                break
            self._several.append(Probe(rows, max(0, taken.used_bytes - self.start.used_bytes)))
            rows = self._next()

    def _next(self) -> int | None:
        before, last = self._several[-2:]
        if last.samples <= before.samples:
            return None
        line = fitted([before, last])
        most = min(self._half, last.samples * GROWTH_FACTOR)
        rows = line.largest_under(self.free_bytes // _SMALL_SHARE, ceiling=most)
        return rows if rows >= min(self._half, _WORTH_A_TRIAL * last.samples) > last.samples else None

    @property
    def _half(self) -> int:
        """The largest part of several."""
        return -(-self.batch_size // 2)

    def _lines(self) -> Peaks:
        """Return what tensors take by rows, in one part and in several, beyond what one sample takes.

        What does not grow with the samples comes in the same pieces every time, and finds them.
        """
        rows = self._several[-1].samples
        # one sample says nothing about the slope, but it cannot be steeper
        several = fitted(self._several[-2:]) if rows > 1 else PeakModel(0.0, self.start.used_bytes)
        taken = self._taken(rows, Split.ONE) if rows > 1 else None
        if taken is None:
            return Peaks(several, several)
        # adding up may take more for every sample, as it does in an embedding
        risen = max(0, taken.used_bytes - self.whole_start.used_bytes)
        slope = min(risen / (rows - 1), several.bytes_per_sample)
        return Peaks(PeakModel(risen - slope * rows, slope), several)

    def _chosen(self, lines: Peaks, ceiling: int) -> int | None:
        """Return the largest even part that fits even if it finds nothing of use in what is kept."""
        for parts in range(-(-self.batch_size // max(1, ceiling)), self.batch_size + 1):
            part = part_sizes(self.batch_size, -(-self.batch_size // parts))[0]
            if part <= ceiling and self._bound_bytes(part, lines) <= self._within_bytes:
                return part
        return None

    def _bound_bytes(self, part: int, lines: Peaks) -> int:
        """Return how high memory may rise: not at all for a size that was tried, but for growing sums."""
        whole = part >= self.batch_size
        held_bytes = self._held_bytes + (0 if whole else self.sums_bytes)
        if part <= self._several[-1].samples and not whole:
            return held_bytes
        used = (lines.whole if whole else lines.split).predicted_peak_bytes(part)
        return held_bytes + round(used * _BETWEEN_PIECES) + DOUBT_BYTES

    @property
    def _within_bytes(self) -> int:
        return int(self.free_bytes * (1 - MARGIN))

    def _tried(self, part: int) -> int | None:
        whole = part >= self.batch_size
        taken = self._taken(part, Split.ONE if whole else Split.ALL)
        rise = None if taken is None else taken.rise_bytes
        if not whole:
            self.verified[part] = rise
        return rise

    def _taken(self, rows: int, kind: Split) -> Taken | None:
        taken = self.trial(rows, kind)
        if taken is not None:
            self._held_bytes = max(self._held_bytes, taken.rise_bytes)
        return taken

    def _through(self, part: int, rise_bytes: int, lines: Peaks) -> Peaks:
        """Return lines through what the chosen part took.

        A smaller one, which would need other pieces, is not to be chosen by them: what was seen to fit
        without a margin is told as if it had one.
        """
        told_bytes = min(rise_bytes, self._within_bytes) if rise_bytes <= self.free_bytes else rise_bytes
        whole = part >= self.batch_size
        slope = (lines.whole if whole else lines.split).bytes_per_sample
        line = PeakModel(max(0.0, told_bytes - slope * part), slope, part)
        free_bytes = self.free_bytes + self.copy_bytes
        if not whole:
            return Peaks(replace(line, seen_samples=0), line, tried_under_bytes=free_bytes)
        slope = lines.split.bytes_per_sample
        fixed = max(float(self.start.rise_bytes), told_bytes - slope * part)
        return Peaks(line, PeakModel(fixed, slope, self._several[-1].samples), tried_under_bytes=free_bytes)

    def _failing_beyond(self, ceiling: int, lines: Peaks) -> Peaks:
        """Return lines by which nothing above the ceiling fits, if there is anything that does."""
        seen = self._several[-1].samples
        raised = [
            PeakModel(self._held_bytes + line.fixed_bytes, line.bytes_per_sample, seen)
            for line in (lines.whole, lines.split)
        ]
        if ceiling < self.batch_size:
            raised = [line.scaled_to_fail_at(ceiling + 1, self.free_bytes) for line in raised]
        least = self._held_bytes + self.sums_bytes if self.sums_bytes else 0
        return Peaks(raised[0], raised[1], least)
