"""Which sizes to try where an allocator keeps all it has had, in pieces that a larger size cannot use.

TensorFlow's for oneDNN does: 256 rows of a convolution found nothing of use in what 127 had left, and memory
rose by both. But it counts to the byte what tensors take; small ones it leaves to the C library, which gives
them back. So small sizes, which leave little behind, say what a sample takes, and of the large ones only that
is tried which was chosen.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from anybatch.memory import PeakModel, Peaks, Probe, fitted
from anybatch.train.plan_search import (
    DOUBT_BYTES,
    FIRST_ROWS,
    GROWTH_FACTOR,
    MARGIN,
    MOST_ASCENDING,
    MOST_LOOKS,
    Split,
)
from anybatch.train.probe import Taken
from anybatch.train.split import largest_part

_SMALL_SHARE = 16
"""Small sizes may leave behind a sixteenth of what is free."""
_WORTH_A_TRIAL = 2
_STEP = 2
_FAR = 4
_MOST_LARGE = 2
_TRIED_BEFORE = 2
"""So many samples were tried while everything was traced."""
_BETWEEN_PIECES = 1.25
"""Tensors come and go in another order every time: in the third training of a convolution one found no room
where it always had, and memory rose by a sixth of what was used."""


_NEAR, _AT_BEST = 4, 0.6
"""A part that is at least a quarter of the batch tells what all of it takes: without sums, six tenths of what
several parts lead to expect, or more."""
_TELLING = 0.75
"""What goes back leaves nothing behind, so that three quarters of the batch can be looked at."""
_PROBES_BEFORE = 2
"""Whoever has made so many has two left: one to see what one part takes, and one for what is chosen."""

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
    _seen: list[Probe] = field(default_factory=lambda: [Probe(1, 0)])
    """By rows, what was taken beyond what one sample takes: that comes in the same pieces every time."""
    _looked: bool = False
    """Whether the whole batch was judged by a look at one part of it."""
    _last: tuple[int, Taken] = field(init=False)
    """The rows that were tried last, and what they took."""
    _held_bytes: int = field(init=False)
    _highest_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self._held_bytes, self._highest_bytes = self.start.left_bytes, self.start.rise_bytes
        self._last = (1, self.start)

    def run(self) -> Peaks:
        """Return the model of the peak, from at most four sizes unless one fails."""
        self._ascend()
        ceiling = self.batch_size
        for number in range(MOST_LOOKS):
            wanted = self._chosen(ceiling)
            if wanted is None:
                break
            if self.sums_bytes and number < _MOST_LARGE and wanted > _FAR * self._seen[-1].samples:
                self._climb()
                continue
            part = self._cautious(wanted)
            # nothing lies between a half and the whole
            final = part < self.batch_size and part in {wanted, self._half}
            if number == 0 and final and self._whole_may_fit(part):
                rise = self._tried(self.batch_size)
                if rise is not None and rise <= self.free_bytes:
                    return self._through(self.batch_size, rise)
            rise = self.verified[part] if part in self.verified else self._tried(part)
            if rise is None:
                ceiling = part * 2 // 3
            elif part == wanted or number + 1 >= _MOST_LARGE - self._looked:
                return self._through(part, rise)
        return self._failing_beyond(ceiling)

    @property
    def _half(self) -> int:
        """The largest part of several."""
        return -(-self.batch_size // 2)

    @property
    def _probes(self) -> int:
        return sum(probe.samples > FIRST_ROWS for probe in self._seen)

    @property
    def _within_bytes(self) -> int:
        return int(self.free_bytes * (1 - MARGIN))

    def _ascend(self) -> None:
        """Try the largest sizes that leave next to nothing behind."""
        # sums that grow with the batch would hide what a sample takes
        kind = Split.ONE if self.sums_bytes else Split.SEVERAL
        rows: int | None = largest_part(self.batch_size, min(_TRIED_BEFORE, self._half))
        most = 1 if self.sums_bytes else MOST_ASCENDING
        while rows is not None and len(self._seen) <= 1 + most:
            if self._taken(rows, kind) is None:
                break
            rows = self._next()

    def _climb(self) -> None:
        """Look at more in one part: one of several that are as large would take all the sums."""
        self._taken(largest_part(self.batch_size, _FAR * self._seen[-1].samples), Split.ONE)

    def _next(self) -> int | None:
        before, last = self._seen[-2:]
        if last.samples <= before.samples:
            return None
        most = min(self._half, last.samples * GROWTH_FACTOR)
        small = self._line().largest_under(self.free_bytes // _SMALL_SHARE, ceiling=most)
        rows = largest_part(self.batch_size, max(1, small))
        return rows if rows >= min(self._half, _WORTH_A_TRIAL * last.samples) > last.samples else None

    def _line(self) -> PeakModel:
        """Return what is taken by rows, beyond what one sample takes."""
        if self._seen[-1].samples > 1:
            return fitted(self._seen[-2:])
        # one sample says nothing about the slope, but it cannot be steeper
        return PeakModel(0.0, self.start.used_bytes)

    def _chosen(self, ceiling: int) -> int | None:
        """Return the largest even part that fits even if it finds nothing of use in what is kept."""
        return self._largest(ceiling, self._line())

    def _cautious(self, wanted: int) -> int:
        """Return what was chosen, or a step on the way to it.

        What does not grow with the samples, as the commit, may hide a slope at the sizes that were tried; it
        is hardly steeper than all that was used there, which has room enough in it.
        """
        rows = self._seen[-1].samples
        if rows == 1 or wanted <= _STEP * rows or self.sums_bytes:
            return wanted
        step = self._largest(_STEP * rows, self._line())
        steepest_bytes = self._last[1].of_tensors_bytes / rows
        surely = int((self._within_bytes - self._held_bytes) / max(1.0, steepest_bytes))
        return max(step or 1, self._largest(min(wanted, max(1, surely)), self._line()) or 1)

    def _largest(self, ceiling: int, line: PeakModel) -> int | None:
        for parts in range(-(-self.batch_size // max(1, ceiling)), self.batch_size + 1):
            part = largest_part(self.batch_size, -(-self.batch_size // parts))
            if part <= ceiling and self._fits(part, line):
                return part
        return None

    def _fits(self, part: int, line: PeakModel) -> bool:
        """Return whether memory stays below the limit even if no piece that is kept is of use."""
        sums_bytes = self.sums_bytes if part < self.batch_size else 0
        if part <= self._seen[-1].samples:
            return self._highest_bytes + sums_bytes <= self._within_bytes
        taken_bytes = round(line.predicted_peak_bytes(part) * _BETWEEN_PIECES) + DOUBT_BYTES
        return self._held_bytes + taken_bytes + sums_bytes <= self._within_bytes

    def _whole_may_fit(self, part: int) -> bool:
        """Return whether the batch in one part may fit, though the line for several says that it does not.

        An LSTM takes hardly more whole than in two parts, and is a third faster. So a part of it is looked at
        without sums and a second one behind it.
        """
        at_best_bytes = self._held_bytes + _AT_BEST * self._line().predicted_peak_bytes(self.batch_size)
        if self.sums_bytes or part * _NEAR < self.batch_size or at_best_bytes > self._within_bytes:
            return False
        if part == 1:
            # one sample is known already, and a line takes two
            return False
        seen = [(1, self.whole_start)]
        for rows in self._looks(part):
            if rows >= self.batch_size or (len(seen) > 1 and not self._fits_by(seen, rows)):
                break
            taken, self._looked = self.trial(rows, Split.ONE), True
            if taken is None:
                return False
            self._note(taken)
            seen.append((rows, taken))
            if self._fits_by(seen, self.batch_size):
                return True
        return False

    def _looks(self, part: int) -> list[int]:
        """Return what to look at in one part: what was chosen, and if need be half as much again.

        Where nearly all goes back to the C library, a larger look leaves nothing behind either, and says
        more: an LSTM's tensors change over to the pool where they are larger, and take less there.
        """
        most = int(self.batch_size * _TELLING)
        if most > part and self._goes_back() and self._fits_by([(1, self.start), self._last], most):
            return [most]
        more = part * 3 // 2
        larger = more if more > self._half else largest_part(self.batch_size, more)
        return [part, larger] if larger > part and self._probes < _PROBES_BEFORE else [part]

    def _goes_back(self) -> bool:
        """Return whether the largest size that was tried took most of what it took from the C library."""
        rows, taken = self._last
        return rows > 1 and taken.given_back_bytes > taken.used_bytes

    def _fits_by(self, seen: Sequence[tuple[int, Taken]], rows: int) -> bool:
        """Return whether one part of so many rows fits by what two smaller ones took.

        Within the margin if it finds the pieces that are kept of use, and within the limit if it does not.
        """
        (few, before), (more, last) = seen[-2:]
        times = (rows - few) / (more - few)
        given_back = before.given_back_bytes + (last.given_back_bytes - before.given_back_bytes) * times
        used = (before.used_bytes + (last.used_bytes - before.used_bytes) * times) * _BETWEEN_PIECES
        fits = (
            max(self._held_bytes, self.start.left_bytes + used) + given_back + DOUBT_BYTES
            <= self._within_bytes
        )
        return fits and self._held_bytes + used + given_back <= self.free_bytes

    def _tried(self, part: int) -> int | None:
        whole = part >= self.batch_size
        taken = self._taken(part, Split.ONE if whole else Split.ALL)
        rise = self.verified[part] = None if taken is None else taken.rise_bytes
        return rise

    def _taken(self, rows: int, kind: Split) -> Taken | None:
        taken = self.trial(rows, kind)
        if taken is not None:
            start = self.whole_start if kind is Split.ONE else self.start
            self._seen.append(Probe(rows, max(0, taken.of_tensors_bytes - start.of_tensors_bytes)))
            self._last = (rows, taken)
            self._note(taken)
        return taken

    def _note(self, taken: Taken) -> None:
        self._held_bytes = taken.left_bytes
        self._highest_bytes = max(self._highest_bytes, taken.rise_bytes)

    def _through(self, part: int, rise_bytes: int) -> Peaks:
        """Return lines through what the chosen part took.

        A smaller one, which would need other pieces, is not to be chosen by them: what was seen to fit
        without a margin is told as if it had one.
        """
        told_bytes = min(rise_bytes, self._within_bytes) if rise_bytes <= self.free_bytes else rise_bytes
        risen_bytes = max(0, told_bytes - self.start.rise_bytes)
        slope = min(self._line().bytes_per_sample, risen_bytes / part)
        line = PeakModel(told_bytes - slope * part, slope, part)
        split = max(probe.samples for probe in self._seen if probe.samples <= self._half)
        whole = replace(line, seen_samples=part if part >= self.batch_size else 0)
        return Peaks(
            whole, replace(line, seen_samples=split), tried_under_bytes=self.free_bytes + self.copy_bytes
        )

    def _failing_beyond(self, ceiling: int) -> Peaks:
        """Return lines by which nothing above the ceiling fits, if there is anything that does."""
        line = self._line()
        fixed = self._held_bytes + DOUBT_BYTES + line.fixed_bytes * _BETWEEN_PIECES
        raised = PeakModel(fixed, line.bytes_per_sample * _BETWEEN_PIECES, self._seen[-1].samples)
        if ceiling < self.batch_size:
            raised = raised.scaled_to_fail_at(ceiling + 1, self.free_bytes)
        least_bytes = self._held_bytes + self.sums_bytes if self.sums_bytes else 0
        return Peaks(raised, raised, least_bytes, self.free_bytes + self.copy_bytes)
