"""The plan of a stream before it runs, and the truth while it does."""

from typing import Any

from anybatch.stream.limits import chain, limit_of
from anybatch.stream.run import Run
from anybatch.stream.stage import Operation, Stage
from anybatch.units import size

_HEADINGS = ("stage", "share of the limit")


def explained(stage: Stage) -> str:
    """Return a table of the stages, the source first, with what each may hold."""
    limit = limit_of(stage)
    rows = [(one.described(), _share(one, stage, limit)) for one in chain(stage)]
    rows.append(("together", f"{size(limit)} at most"))
    widths = [max(len(row[at]) for row in [*rows, _HEADINGS]) for at in range(len(_HEADINGS))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows]
    heading = "  ".join(text.ljust(width) for text, width in zip(_HEADINGS, widths, strict=True))
    return "\n".join([heading, "  ".join("-" * width for width in widths), *lines])


def measured(runs: list[Run]) -> list[dict[str, Any]]:
    """Return one mapping per stage: bytes promised, held and at most held, elements and seconds waited."""
    meters = [meter for run in runs for meter in run.meters.stages]
    return [
        {
            "stage": meter.stage,
            "bound_bytes": meter.bound_bytes,
            "held_bytes": meter.live_bytes() if meter.live_bytes else meter.held_bytes,
            "peak_bytes": meter.peak_bytes,
            "elements": meter.elements,
            "seconds_waited": meter.seconds_waited,
        }
        for meter in meters
    ]


def _share(stage: Stage, whole: Stage, limit: int) -> str:
    own = stage.weight - (stage.parent.weight if isinstance(stage, Operation) else 0)
    return size(limit * own // whole.weight) if own else "none: passes on what it gets"
