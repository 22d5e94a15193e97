"""Put the figures of the kept results where they are read: `python -m benchmarks.figures`.

The tables of the README, and the pictures of the page about the benchmarks.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.machine import in_words, kind_in_words
from benchmarks.measures import MEASURES, rate_in_words, times_better
from benchmarks.questions import COMPARABLE, QUESTIONS, Question, Row
from benchmarks.registry import THEMES, load_theme

HERE = Path(__file__).parent
README, PAGE, RESULTS = HERE.parent / "README.md", HERE / "README.md", HERE / "results"
START, END = "<!-- figures -->", "<!-- end of figures -->"
CASES = {
    "floats": "100 floats + label, batch 512",
    "bytes784": "784 raw bytes + label, batch 512",
    "images": "150 KB raw images + label, batch 64",
    "ragged": "lists of 0 to 60 integers, strings, batch 512",
}
# by the heading of a column: of several contenders the fastest is told
OTHERS: Mapping[str, tuple[str, ...]] = {
    "tf.data, usual": ("tf.data usual",),
    "tf.data, best": (
        "tf.data vectorised",
        "tf.data best",
        "tf.data best, fixed",
        "tf.data best in order",
    ),
    "Grain": ("Grain", "Grain ArrayRecord"),
    "tfrecord": ("tfrecord",),
    "WebDataset": ("WebDataset",),
}
HOW_TO_READ = (
    "Medians. In parentheses: how many times as fast, or as small, anybatch is; below 1 it is slower or "
    "larger. anybatch and tf.data check every checksum, and so does Grain on ArrayRecord; Grain on TFRecord, "
    "tfrecord and WebDataset check none. The bare limit copies and checksums the bytes and does nothing else."
)
Rows = dict[tuple[str, str], Row]  # by case and contender


def main() -> int:
    if not (RESULTS / "in_order.jsonl").exists():
        print("there is no in_order.jsonl yet; `make bench` makes it", file=sys.stderr)
        return 2
    README.write_text(with_figures(README.read_text(), tables(RESULTS)))
    PAGE.write_text(with_figures(PAGE.read_text(), pictures(RESULTS)))
    return 0


def with_figures(page: str, figures: str) -> str:
    """Return a page with other figures between its marks."""
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n{figures}\n{END}{after}"


def tables(folder: Path) -> str:
    """Return everything that the README has of the results."""
    parts = (first_table(folder), second_table(folder), when(folder), HOW_TO_READ)
    return "\n\n".join(part for part in parts if part)


def first_table(folder: Path) -> str:
    """Return the rates of reading, and how many times faster anybatch is; nobody has an empty column."""
    rows = rows_of(lines_of(folder, "in_order"))
    others = [heading for heading in OTHERS if any(fastest(rows, case, heading) for case in CASES)]
    heads = ["records/s, in file order", *others, "anybatch", "bare limit"]
    body = [row_of(case, title, others, rows) for case, title in CASES.items()]
    return "\n".join([f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *body])


def row_of(case: str, title: str, others: list[str], rows: Rows) -> str:
    """Return one line: what each reaches, and the ratio of anybatch to it in parentheses."""
    ours = rows[case, "anybatch"]["rate"]
    reached = [fastest(rows, case, heading) for heading in others]
    cells = [f"{rate_in_words(rate, 'records')} ({ratio(ours / rate)})" if rate else "" for rate in reached]
    bare = rows[case, "bare limit, all cores"]["rate"]
    cells += [f"**{rate_in_words(ours, 'records')}**", rate_in_words(bare, "records")]
    return f"| {title} | {' | '.join(cells)} |"


def fastest(rows: Rows, case: str, heading: str) -> float | None:
    """Return the rate of the fastest contender under a heading; none if nobody was measured."""
    rates = [rows[case, name]["rate"] for name in OTHERS[heading] if (case, name) in rows]
    return max((rate for rate in rates if rate), default=None)


def second_table(folder: Path) -> str:
    """Return what else was measured: one line per question, of the themes that have results."""
    lines = [answered(question, rows_of(lines_of(folder, question.theme))) for question in QUESTIONS]
    known = [line for line in lines if line]
    return "\n".join(["| | others | anybatch |", "|---|---|---|", *known]) if known else ""


def answered(question: Question, rows: Rows) -> str:
    """Return the line of one question; nothing if anybatch has no figure."""
    ours = rows.get((question.case, question.ours))
    if ours is None or not _known(ours):
        return ""
    named = [(name, rows.get((question.case, contender))) for contender, name in question.others.items()]
    others = [
        f"{name} {question.cell(row)}{times(ours, row, question)}"
        for name, row in named
        if row and _known(row)
    ]
    return f"| {question.title} | {'; '.join(others)} | **{question.cell(ours)}** |"


def times(ours: Row, theirs: Row, question: Question) -> str:
    """Return how many times better ours is, in parentheses, where that is one number."""
    better = times_better(ours["value"], theirs["value"], MEASURES[ours["measured"]])
    return "" if better is None or question.cell not in COMPARABLE else f" ({ratio(better)})"


def ratio(times: float) -> str:
    """Return a ratio as it is read: `13x`, `1.5x`, `0.62x`.

    >>> [ratio(number) for number in (12.7, 1.52, 0.618)]
    ['13x', '1.5x', '0.62x']
    """
    return f"{times:.0f}x" if times >= 10 else f"{times:.1f}x" if times >= 1 else f"{times:.2f}x"


def when(folder: Path) -> str:
    """Return on which machines, and between which days, the themes were measured."""
    measured = dict.fromkeys(("in_order", *(question.theme for question in QUESTIONS)))
    machines = {theme: machine_of(lines) for theme in measured if (lines := lines_of(folder, theme))}
    days = sorted({machine["measured"].partition("T")[0] for machine in machines.values()})
    span = " and ".join(dict.fromkeys((days[0], days[-1])))
    return (
        f"Each theme is one run, everybody in turns, {'between' if len(days) > 1 else 'on'} {span}, "
        f"on {where(machines)}. Every round, with commit and load, stands in "
        "[benchmarks/results](benchmarks/README.md); `make bench` measures all of it anew and writes these "
        "tables."
    )


def where(machines: Mapping[str, Row]) -> str:
    """Return the machine of most themes, and by name the themes that were measured on another one."""
    kinds = {theme: kind_in_words(machine) for theme, machine in machines.items()}
    most, *others = sorted(dict.fromkeys(kinds.values()), key=lambda kind: -list(kinds.values()).count(kind))
    named = {
        other: ", ".join(f"`{theme}`" for theme, kind in kinds.items() if kind == other) for other in others
    }
    return "; ".join([most, *(f"{themes} on {other}" for other, themes in named.items())])


def pictures(folder: Path) -> str:
    """Return the plot of every theme that has been measured, and when that was."""
    return "\n\n".join(
        f"### `{theme}`: {load_theme(theme).title}\n\n"
        f"![{load_theme(theme).title}]({folder.name}/{theme}.svg)\n\n"
        f"{_measured(machine_of(lines))}"
        for theme in THEMES
        if (lines := lines_of(folder, theme)) and (folder / f"{theme}.svg").exists()
    )


def _measured(machine: Row) -> str:
    return f"Measured {machine['measured'].partition('T')[0]} at {machine['commit']} on {in_words(machine)}."


def lines_of(folder: Path, theme: str) -> list[Row]:
    """Return the kept results of a theme; none if it has not been run."""
    path = folder / f"{theme}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def rows_of(lines: list[Row]) -> Rows:
    """Return the summaries by case and contender."""
    return {(line["case"], line["contender"]): line for line in lines if line["kind"] == "summary"}


def machine_of(lines: list[Row]) -> Row:
    """Return what the results were measured on."""
    return next(line for line in lines if line["kind"] == "machine")


def _known(row: Row) -> bool:
    return bool(row["ended"]) or row["value"] is not None


if __name__ == "__main__":
    sys.exit(main())
