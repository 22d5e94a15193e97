"""One update as a transaction: memory may run out anywhere in it, at the cost of the unfinished part."""

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from anybatch.memory import Headroom, SilenceWatch, allowance, are_told, give_back_freed, held
from anybatch.train.backends import Steps
from anybatch.train.events import Event, noted
from anybatch.train.exhaustion import in_one_line, is_exhaustion
from anybatch.train.inputs import Part
from anybatch.train.refusals import OneSampleDoesNotFit, UpdateCutShort
from anybatch.train.split import ladder, larger, largest_part, smaller
from anybatch.units import size as in_words

QUIET_STEPS = 64
"""So many updates without exhaustion, and a larger part is tried; twice as many after each that failed."""

_SILENCE = SilenceWatch()


@dataclass(slots=True)
class PartSize:
    """How large parts may be: smaller when memory runs out, larger again after a quiet time.

    `wanted` is where to start and never to exceed; None: whole batches, however large.
    """

    wanted: int | None
    events: list[Event] = field(default_factory=list)
    now: int | None = None
    step: int = 0
    headroom: Headroom = field(default_factory=Headroom)
    _rungs: list[int] = field(default_factory=list)
    _quiet: int = 0
    _patience: int = QUIET_STEPS
    _grown: bool = False

    def __post_init__(self) -> None:
        self.now = self.wanted

    def allows(self, rows: int) -> bool:
        """Return whether so many rows may be one part."""
        return self.now is None or rows <= self.now

    def next_of(self, rows: int) -> int:
        """Return how many of the remaining rows come next."""
        return rows if self.now is None else largest_part(rows, self.now)

    def shrink(self, failed: int, phase: str, reason: str) -> None:
        """Note that memory ran out with a part of so many rows."""
        if failed <= 1:
            raise nothing_fits(phase, reason)
        if not self._rungs or self._rungs[-1] < failed:
            self._rungs = ladder(self.wanted or failed)
        # after a failed try to grow, the next one comes later
        self._patience *= 2 if self._grown else 1
        self._quiet, self._grown = 0, False
        self.now = smaller(self._rungs, failed)
        noted(self.events, Event("exhausted", phase, self.step, failed, self.now, reason))

    def finished(self) -> None:
        """Note that one more update went through."""
        self.step += 1
        if self.now is None or not self._rungs or self.now == self._rungs[-1]:
            return
        self._quiet += 1
        if self._quiet >= self._patience:
            before, self.now = self.now, larger(self._rungs, self.now)
            self._quiet, self._grown = 0, True
            noted(self.events, Event("grown", "part", self.step, before, self.now))


@dataclass(frozen=True, slots=True)
class Columns:
    """How rows of a framework's columns are counted, cut and handed over."""

    row_count: Callable[[Any], int]
    rows_between: Callable[[Any, int, int], Any]
    tensors: Callable[[Any], Any]


class Transaction:
    """Runs batches through a model's steps, whole where they fit and in parts where not."""

    def __init__(
        self,
        steps: Callable[[Any], Steps],
        splitting: Callable[[Any, str], Steps],
        columns: Columns,
        size: PartSize,
    ) -> None:
        self._steps = steps
        self._splitting = splitting
        self._columns = columns
        self.size = size
        self.alive: Callable[[], None] = lambda: None
        """Called behind every part: an update of many may take long."""
        self.begins: Callable[[int], None] = lambda rows: None
        """Called before a batch is tried, with its rows: who is killed for it cannot say so afterwards."""

    def update(self, parts: Iterator[Part], batch_size: int | None) -> Any:
        """Make one update out of the parts of a batch, and return its logs; None of a batch without rows."""
        first, last = next(parts, (None, True))
        if first is None:
            return None
        rows = self._columns.row_count(first)
        self.begins(rows if last else batch_size or rows)
        logs = None
        if last and self.size.allows(rows):
            done, logs = self._tried(
                lambda: self._steps(first).update_whole(self._columns.tensors(first)), rows, "part"
            )
            if not done:
                logs = self._update_in_parts(iter([(first, True)]), rows)
        else:
            logs = self._update_in_parts(chain([(first, last)], parts), rows if last else batch_size or rows)
        self.size.finished()
        if self.size.wanted is not None and _is_power_of_two(self.size.step):
            # the first updates of a size leave blocks behind that the next ones cannot use: 27 MB of 100
            give_back_freed()
        return logs

    def test(self, parts: Iterator[Part], batch_size: int | None) -> Any:
        """Count one batch that is not trained on, and return its logs; None of a batch without rows."""
        first, last = next(parts, (None, True))
        if first is None:
            return None
        rows = self._columns.row_count(first)
        self.begins(rows if last else batch_size or rows)
        if last and self.size.allows(rows):
            done, logs = self._tried(
                lambda: self._steps(first).test_whole(self._columns.tensors(first)), rows, "test"
            )
            if done:
                return logs
        steps = self._splitting(first, "test")
        steps.begin()
        expected = rows if last else batch_size or rows
        seen = self._all_parts(
            chain([(first, last)], () if last else parts),
            lambda part, n: steps.add_test_part(self._columns.tensors(part), n / expected),
            "test",
        )
        return self._committed(lambda _careful: steps.commit_test(seen))

    def predict(self, parts: Iterator[Part]) -> list[Any]:
        """Return what the model predicts for the parts of a batch."""
        first, last = next(parts, (None, True))
        if first is None:
            return []
        whole = self._columns.row_count(first) if last else None
        found: list[Any] = []

        def run(part: Any, n: int) -> None:
            steps = self._steps(part) if n == whole else self._splitting(part, "predict")
            found.append(steps.predict(self._columns.tensors(part)))

        self._all_parts(chain([(first, last)], parts), run, "predict")
        return found

    def _update_in_parts(self, parts: Iterator[Part], expected: int) -> Any:
        first, last = next(parts)
        steps = self._splitting(first, "part")
        steps.begin()
        rows = self._all_parts(
            chain([(first, last)], parts),
            lambda part, n: steps.add_part(self._columns.tensors(part), n / expected),
            "part",
        )
        return self._committed(
            lambda careful: steps.commit(rows, sizes_were_right=rows == expected, careful=careful)
        )

    def _all_parts(self, parts: Iterator[Part], run: Callable[[Any, int], None], phase: str) -> int:
        """Run all parts, and return how many rows they had."""

        def run_one(part: Any, rows: int) -> None:
            run(part, rows)
            self.alive()

        return sum(in_pieces(columns, run_one, self._columns, self.size, phase) for columns, _ in parts)

    def _committed(self, commit: Callable[[bool], Any]) -> Any:
        """Commit; if memory runs out there, once more, carefully: all but the sums is let go by then."""
        reason = ""
        for careful in (False, True):
            done, logs, reason = _attempt(partial(commit, careful))
            if done:
                return logs
            noted(self.size.events, Event("exhausted", "commit", self.size.step, 0, 0, reason))
        raise nothing_fits("commit", reason)

    def _tried(self, run: Callable[[], Any], rows: int, phase: str) -> tuple[bool, Any]:
        return _tried(run, rows, self.size, phase)


def in_pieces(
    rows_of: Any, run: Callable[[Any, int], None], columns: Columns, size: PartSize, phase: str
) -> int:
    """Run all rows in pieces as large as may be; what is finished stays, what fails is cut smaller."""
    rows = columns.row_count(rows_of)
    start = 0
    while start < rows:
        n = size.next_of(rows - start)
        piece = rows_of if n == rows else columns.rows_between(rows_of, start, start + n)
        done, _ = _tried(partial(run, piece, n), n, size, phase)
        start += n if done else 0
    return rows


def _tried(run: Callable[[], Any], rows: int, size: PartSize, phase: str) -> tuple[bool, Any]:
    missing_bytes = size.headroom.missing_bytes(rows)
    if missing_bytes and rows > 1:
        size.shrink(rows, phase, f"address space would run out, {in_words(missing_bytes)} are missing")
        return False, None
    done, result, reason = _attempt(run)
    if done:
        size.headroom.went_through(rows)
    else:
        size.shrink(rows, phase, reason)
    return done, result


def _attempt(run: Callable[[], Any]) -> tuple[bool, Any, str]:
    """Return whether something went through, its result, and else why memory ran out.

    The exception is gone when this returns: its frames would hold on to the very tensors that were too many.
    """
    try:
        result = run()
    except Exception as error:
        if isinstance(error, UpdateCutShort) or not is_exhaustion(error):
            raise
        reason = in_one_line(error)
        if not are_told():
            # what went well before it may not have
            raise UpdateCutShort(reason) from None
    else:
        if _SILENCE.came_near():
            raise UpdateCutShort("address space came so near to its limit that products may be wrong")
        return True, result, ""
    gc.collect()
    give_back_freed()
    return False, None, reason


def _is_power_of_two(step: int) -> bool:
    return step & (step - 1) == 0


def nothing_fits(phase: str, reason: str) -> OneSampleDoesNotFit:
    """Return what is left to say when nothing smaller can be tried: what is held, and what is allowed."""
    try:
        return OneSampleDoesNotFit(phase, held().counted_bytes, allowance().limit_bytes, reason)
    except MemoryError:
        # not even a small file can be read
        return OneSampleDoesNotFit(phase, None, None, reason)
