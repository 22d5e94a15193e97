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

from benchmarks.columns import COLUMNS
from benchmarks.job import FINISHED
from benchmarks.machine import in_words
from benchmarks.measures import measure_of
from benchmarks.registry import Case, Theme
from benchmarks.rounds import Standing
from benchmarks.summary import Row

CaseResult = tuple[Case, list[Standing], list[Row]]
LEAST_WIDTH = 180
PROVEN = {
    "ordered": "equal, in order",
    "any_order": "equal, any order",
    "records": "count equal",
}


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
    title = f"{case.title}: {measure_of(case).title(case.unit)}"
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE, pad_edge=False)
    table.add_column("contender", no_wrap=True)
    for column in COLUMNS[case.measured]:
        table.add_column(column.heading, justify="right", no_wrap=True)
    table.add_column("values", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row), style="bold" if row.role == "ours" else None)
    return table


def _cells(row: Row) -> list[str]:
    columns = COLUMNS[row.measured]
    if row.failure or row.difference:
        return [row.contender, *["-"] * len(columns), "DIFFERENT" if row.difference else "left out"]
    proven = PROVEN.get(row.proves, "-") if row.ended in {"", FINISHED} else "-"
    return [row.contender, *(column.cell(row) for column in columns), proven]


def _notes(results: list[CaseResult]) -> list[str]:
    noted = {row.contender: row.note for _, _, rows in results for row in rows if row.note}
    return [f"{name}: {note}" for name, note in noted.items()] + [
        "`anybatch is` so many times as fast, or as small, by medians; below 1 it is slower or larger;",
        "`cpu` is that of all threads in one pass;",
        "`read` counts read calls in one pass, not what comes through a mapping; sizes are MiB;",
        "`then` is the pace behind the first batch, which has planning and tracing in it;",
        "`peak` is anonymous memory, the largest sample of all rounds, `growth` the part since the imports",
    ]
