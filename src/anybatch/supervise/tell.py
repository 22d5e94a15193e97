"""What people and programs get to see while a script is supervised."""

import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from typing import Protocol, TextIO

from anybatch.handover import Orders, Pulse
from anybatch.supervise.observe import Sample
from anybatch.supervise.verdict import Cause, Verdict
from anybatch.units import size


@dataclass(frozen=True, slots=True)
class Summary:
    """The whole story in numbers."""

    exit_code: int
    cause: Cause
    restarts: int
    last_step: int
    peak_bytes: int
    limit_bytes: int
    seconds: float

    def __str__(self) -> str:
        # what a short script holds, a group may never have counted
        peak = f"peak {size(self.peak_bytes)} of" if self.peak_bytes else "limit"
        memory = f"{peak} {size(self.limit_bytes)}"
        steps = f"{self.last_step:,} steps in " if self.last_step else ""
        return f"{_restarted(self.restarts)}; {memory}; {steps}{self.seconds:,.0f} s"


def _restarted(times: int) -> str:
    """Return how often, in words.

    >>> [_restarted(times) for times in (0, 1, 2)]
    ['no restart', 'restarted once', 'restarted 2 times']
    """
    if not times:
        return "no restart"
    return "restarted once" if times == 1 else f"restarted {times:,} times"


class Teller(Protocol):
    """Somebody who is told what happens."""

    def note(self, text: str) -> None:
        """Something worth a line."""

    def began(self, orders: Orders, no_group: str | None) -> None:
        """An attempt begins; `no_group`: why the child has no memory group of its own."""

    def looked(self, sample: Sample, pulse: Pulse, limit_bytes: int) -> None:
        """The child was looked at."""

    def ended(self, orders: Orders, verdict: Verdict, then: str) -> None:
        """An attempt ended, and what happens next."""

    def over(self, summary: Summary) -> None:
        """Everything is over."""


class Lines:
    """For people: one line per event, and on a terminal one that changes.

    That line is shown only where the script prints elsewhere: two writers on one line cannot be read.
    Otherwise it becomes the title of the terminal's window.
    """

    def __init__(self, out: TextIO = sys.stderr) -> None:
        self._out = out
        self._terminal = out.isatty()
        self._alone = not sys.stdout.isatty()
        self._shown = False
        self._restarts = 0

    def note(self, text: str) -> None:
        self._line(f"anybatch: {text}")

    def began(self, orders: Orders, no_group: str | None) -> None:
        self._restarts = orders.attempt - 1
        if orders.attempt == 1 and no_group is not None:
            self.note(
                f"no memory group of its own for the script ({no_group}); its memory is watched instead"
            )

    def looked(self, sample: Sample, pulse: Pulse, limit_bytes: int) -> None:
        if not self._terminal:
            return
        text = live_line(sample, pulse, limit_bytes, self._restarts)
        if self._alone:
            self._write(f"\r\x1b[K{text[: _columns(self._out) - 1]}")
            self._shown = True
        else:
            self._write(f"\x1b]2;{text}\x07")

    def ended(self, orders: Orders, verdict: Verdict, then: str) -> None:
        if verdict.cause is not Cause.FINISHED or orders.attempt > 1:
            self.note(f"{verdict.sentence}; {then}" if then else verdict.sentence)

    def over(self, summary: Summary) -> None:
        self.note(str(summary))

    def _line(self, text: str) -> None:
        self._write(("\r\x1b[K" if self._shown else "") + text + "\n")
        self._shown = False

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


class Events:
    """For programs: one JSON document per line on stdout; the script's own output goes to stderr."""

    def __init__(self) -> None:
        self._restarts = 0

    def note(self, text: str) -> None:
        self._event("note", text=text)

    def began(self, orders: Orders, no_group: str | None) -> None:
        self._restarts = orders.attempt - 1
        self._event(
            "began",
            attempt=orders.attempt,
            limit_bytes=orders.limit_bytes,
            largest_part=orders.largest_part,
            own_group=no_group is None,
            why_not=no_group,
        )

    def looked(self, sample: Sample, pulse: Pulse, limit_bytes: int) -> None:
        self._event(
            "sample",
            step=pulse.step,
            epoch=pulse.epoch,
            part=pulse.part,
            batch_size=pulse.batch_size,
            held_bytes=sample.held_bytes,
            limit_bytes=limit_bytes,
            pressure=sample.pressure,
            restarts=self._restarts,
        )

    def ended(self, orders: Orders, verdict: Verdict, then: str) -> None:
        self._event(
            "ended", attempt=orders.attempt, cause=verdict.cause, sentence=verdict.sentence, then=then
        )

    def over(self, summary: Summary) -> None:
        self._event("over", **asdict(summary))

    def _event(self, event: str, **fields: object) -> None:
        sys.stdout.write(json.dumps({"event": event, "time": round(time.time(), 3), **fields}) + "\n")
        sys.stdout.flush()


def live_line(sample: Sample, pulse: Pulse, limit_bytes: int, restarts: int = 0) -> str:
    """Return what matters now.

    >>> live_line(
    ...     Sample(3.0, 1 << 30, 1200, 128), Pulse(step=1200, epoch=2, batch_size=512, part=128), 2 << 30
    ... )
    'step 1,200 · epoch 3 · batch 512 = 4 x 128 · 1 GiB of 2 GiB'
    >>> live_line(Sample(1.0, 1 << 30, 0, 64), Pulse(batch_size=512, part=64, planning=True, beat=3), 2 << 30)
    'planning, parts of 64 tried · 1 GiB of 2 GiB'
    >>> live_line(Sample(1.0, 1 << 30, 0, 64), Pulse(), 2 << 30, restarts=1)
    'not training yet · 1 GiB of 2 GiB · restarted once'
    """
    memory = f"{size(sample.held_bytes)} of {size(limit_bytes)}"
    waiting = f"waiting for memory {sample.pressure:.0%} of the time" if sample.pressure >= 0.1 else ""
    again = _restarted(restarts) if restarts else ""
    return " · ".join(text for text in (*_where(pulse), memory, again, waiting) if text)


def _where(pulse: Pulse) -> tuple[str, ...]:
    if pulse.planning and pulse.part:
        return (f"planning, parts of {pulse.part:,} tried",)
    if pulse.planning or not (pulse.beat or pulse.step):
        return ("not training yet",)
    parts = -(-pulse.batch_size // pulse.part) if pulse.part else 0
    split = f"batch {pulse.batch_size:,} = {parts} x {pulse.part:,}" if parts else ""
    return (f"step {pulse.step:,} · epoch {pulse.epoch + 1:,}", split)


def _columns(out: TextIO) -> int:
    try:
        return os.get_terminal_size(out.fileno()).columns
    except (OSError, ValueError):
        return 80
