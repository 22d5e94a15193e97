"""The results as tables for people and as JSON lines for programs."""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks.machine import in_words
from benchmarks.registry import Case, Theme, Unit
from benchmarks.rounds import Standing
from benchmarks.summary import Row

CaseResult = tuple[Case, list[Standing], list[Row]]
LEAST_WIDTH = 140
RATES: dict[Unit, str] = {"records": "records/s", "bytes": "GB/s", "shards": "shards/s"}
HEADINGS = ("median", "slowest .. fastest", "anybatch is", "first batch", "cpu", "read", "peak", "growth")
PROVEN = {"ordered": "equal, in order", "any_order": "equal, any order", "records": "count equal"}


def show(theme: Theme, results: list[CaseResult], machine: dict[str, Any]) -> None:
    """Print one table per case, what went wrong, the notes, and the machine."""
    console = Console(highlight=False)
    console.width = max(console.width, LEAST_WIDTH)
    console.print(f"\n[bold]{theme.title}[/]")
    for case, _, rows in results:
        console.print(_table(case, rows))
        for row in rows:
            if problem := row.difference or row.failure:
                console.print(f"{row.contender}: {problem}", style="red", markup=False)
    for note in [*_notes(results), in_words(machine)]:
        console.print(note, style="dim", markup=False)


def write_lines(path: Path, theme: Theme, results: list[CaseResult], machine: dict[str, Any]) -> None:
    """Write the machine, every check, every round and every summary. The file appears whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    lines = (json.dumps(line) for line in _lines(theme, results, machine))
    unfinished.write_text("".join(f"{line}\n" for line in lines))
    unfinished.replace(path)


def rate_in_words(rate: float, unit: Unit) -> str:
    """Return a rate in the words of `RATES`: `1.25`, `1,590k`, `640`."""
    if unit == "bytes":
        return f"{rate / 1e9:,.2f}"
    return f"{rate / 1e3:,.0f}k" if rate >= 1e5 else f"{rate:,.0f}"


def _lines(theme: Theme, results: list[CaseResult], machine: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"kind": "machine", **machine}
    for case, standings, rows in results:
        where = {"theme": theme.name, "case": case.name}
        for standing in standings:
            who = where | {"contender": standing.contender.name}
            yield {"kind": "check", **who, **asdict(standing.checked)}
            for number, answer in enumerate(standing.timed, 1):
                yield {"kind": "round", **who, "round": number, **asdict(answer)}
        for row in rows:
            yield {"kind": "summary", **where, **asdict(row)}


def _table(case: Case, rows: Iterable[Row]) -> Table:
    title = f"{case.title}: {RATES[case.unit]}"
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE, pad_edge=False)
    table.add_column("contender", no_wrap=True)
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("values", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row), style="bold" if row.role == "ours" else None)
    return table


def _cells(row: Row) -> list[str]:
    if row.rate is None or row.slowest_rate is None or row.fastest_rate is None:
        return [row.contender, *["-"] * len(HEADINGS), "DIFFERENT" if row.difference else "failed"]
    spread = f"{rate_in_words(row.slowest_rate, row.unit)} .. {rate_in_words(row.fastest_rate, row.unit)}"
    return [
        row.contender,
        rate_in_words(row.rate, row.unit),
        spread,
        _or_dash(None if row.ratio_to_anybatch is None else 1 / row.ratio_to_anybatch, "{:,.2f}x"),
        _or_dash(row.first_batch_seconds, "{:.3f} s"),
        _or_dash(row.cpu_seconds, "{:,.2f} s"),
        *map(_mebibytes, (row.read_bytes, row.peak_anonymous_bytes, row.peak_growth_bytes)),
        PROVEN.get(row.proves, "-"),
    ]


def _notes(results: list[CaseResult]) -> list[str]:
    noted = {row.contender: row.note for _, _, rows in results for row in rows if row.note}
    return [f"{name}: {note}" for name, note in noted.items()] + [
        "`anybatch is` so many times as fast, by medians; `cpu` is that of all threads in one pass;",
        "`read` counts read calls in one pass, not what comes through a mapping; sizes are MiB;",
        "`peak` is anonymous memory, the largest sample of all rounds, `growth` the part since the imports",
    ]


def _mebibytes(size_bytes: float | None) -> str:
    return _or_dash(None if size_bytes is None else size_bytes / (1 << 20), "{:,.1f}")


def _or_dash(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)
