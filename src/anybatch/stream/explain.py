"""The plan of a stream before it runs, and the truth while it does."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from anybatch.memory import cacheable_bytes
from anybatch.records import RecordSet
from anybatch.stream.declared import declared
from anybatch.stream.layout import Dense, Lists, Strings
from anybatch.stream.limits import chain, limit_of
from anybatch.stream.run import Run
from anybatch.stream.shuffle import Shuffle
from anybatch.stream.stage import Operation, Stage
from anybatch.units import size

_HEADINGS = ("stage", "yields", "share of the limit")
_WIDEST = 72


def explained(stage: Stage) -> str:
    """Return a table of the stages, the source first: what they yield, and what each may hold."""
    limit = limit_of(stage)
    rows = [(_short(one.described()), _yields(one), _share(one, stage, limit)) for one in chain(stage)]
    rows.append(("together", "", f"{size(limit)} at most"))
    widths = [max(len(row[at]) for row in [*rows, _HEADINGS]) for at in range(len(_HEADINGS))]
    table = [_HEADINGS, tuple("-" * width for width in widths), *rows]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
    return "\n".join([*lines, *_warnings(stage)])


def _yields(stage: Stage) -> str:
    """Return dtype and shape of every column, as far as they are known before reading."""
    found = declared(stage)
    if found is None:
        return "what the function returns"
    columns = found.items() if isinstance(found, Mapping) else [("", found)]
    each = ", ".join(f"{name}: {_of(layout)}" if name else _of(layout) for name, layout in columns)
    return _short(f"batches of {each}" if stage.batched else each)


def _of(layout: Any) -> str:
    match layout:
        case Dense():
            return f"{layout.dtype} {_shape(layout.shape)}" if layout.shape else str(layout.dtype)
        case Strings():
            return f"bytes {_shape(layout.shape)}" if layout.shape else "bytes"
        case Lists():
            return f"lists of {_of(layout.values)}"
        case tuple():
            return f"({', '.join(map(_of, layout))})"
        case Mapping():
            return f"{{{', '.join(f'{name}: {_of(one)}' for name, one in layout.items())}}}"
    return "nothing" if layout is None else str(layout)


def _shape(shape: tuple[int | None, ...]) -> str:
    return "x".join("?" if length is None else str(length) for length in shape)


def _short(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def _warnings(stage: Stage) -> Iterator[str]:
    """Yield a line where records will be read at random from storage that is slower than memory."""
    stages = chain(stage)
    record_set = getattr(stages[0], "record_set", None)
    at_random = any(isinstance(one, Shuffle) and not one.window_bytes for one in stages)
    if not at_random or not isinstance(record_set, RecordSet):
        return
    in_files = sum(Path(shard.path).stat().st_size for shard in record_set.shards)
    cached = cacheable_bytes()
    if in_files > cached:
        yield (
            f"random reads will bind: the shards hold {size(in_files)}, and memory can keep {size(cached)} "
            "of them at hand; small records are swept up in fewer passes with a larger limit_memory, "
            'shuffle(window="256MiB") reads neighbours together, and '
            "`anybatch reshard --shuffle` shuffles once and for all"
        )


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
    own, reserved = stage.weight, stage.reserved_bytes
    if isinstance(stage, Operation):
        own, reserved = own - stage.parent.weight, reserved - stage.parent.reserved_bytes
    shared = max(0, limit - whole.reserved_bytes) * own // whole.weight
    return size(shared + max(0, reserved)) if own else "none: passes on what it gets"
