"""Put the figures of the kept results into the README: `python -m benchmarks.figures`."""

import json
import sys
from pathlib import Path

from benchmarks.machine import in_words
from benchmarks.measures import MEASURES, rate_in_words, times_better
from benchmarks.questions import COMPARABLE, QUESTIONS, Question, Row

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
START, END = "<!-- figures -->", "<!-- end of figures -->"
CASES = {
    "floats": "100 floats + label, batch 512",
    "bytes784": "784 raw bytes + label, batch 512",
    "images": "150 KB raw images + label, batch 64",
    "ragged": "lists of 0 to 60 integers, strings, batch 512",
}
FASTEST_OF = ("tf.data best", "tf.data best, fixed")
Rows = dict[tuple[str, str], Row]  # by case and contender


def main() -> int:
    if not (RESULTS / "in_order.jsonl").exists():
        print("there is no in_order.jsonl yet; `make bench` makes it", file=sys.stderr)
        return 2
    readme = ROOT / "README.md"
    before, _, rest = readme.read_text().partition(START)
    _, _, after = rest.partition(END)
    body = "\n\n".join(part for part in (first_table(RESULTS), second_table(RESULTS)) if part)
    readme.write_text(f"{before}{START}\n{body}\n{END}{after}")
    return 0


def first_table(folder: Path) -> str:
    """Return the rates of reading, and how many times faster anybatch is."""
    lines = lines_of(folder, "in_order")
    rows = rows_of(lines)
    heads = (
        "records/s, in file order, checksums checked",
        "tf.data, usual",
        "tf.data, best",
        "anybatch",
        "bare limit",
    )
    body = [row_of(case, title, rows) for case, title in CASES.items()]
    machine_line = f"Measured in one run on {machine_of(lines)}. Repeat it with `make bench`."
    return "\n".join([f"| {' | '.join(heads)} |", "|---|---|---|---|---|", *body, "", machine_line])


def row_of(case: str, title: str, rows: Rows) -> str:
    """Return one line: what each reaches, and the ratio of anybatch to it in parentheses."""
    ours = rows[case, "anybatch"]["rate"]
    best = max((rows[case, name] for name in FASTEST_OF), key=lambda row: row["rate"])
    others = [rows[case, "tf.data usual"], best]
    cells = [f"{rate_in_words(row['rate'], 'records')} ({ours / row['rate']:.0f}x)" for row in others]
    bare = rows[case, "bare limit, all cores"]["rate"]
    cells += [f"**{rate_in_words(ours, 'records')}**", rate_in_words(bare, "records")]
    return f"| {title} | {' | '.join(cells)} |"


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
    if better is None or question.cell not in COMPARABLE:
        return ""
    return f" ({better:.0f}x)" if better >= 10 else f" ({better:.1f}x)"


def lines_of(folder: Path, theme: str) -> list[Row]:
    """Return the kept results of a theme; none if it has not been run."""
    path = folder / f"{theme}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def rows_of(lines: list[Row]) -> Rows:
    """Return the summaries by case and contender."""
    return {(line["case"], line["contender"]): line for line in lines if line["kind"] == "summary"}


def machine_of(lines: list[Row]) -> str:
    """Return what the results were measured on."""
    return in_words(next(line for line in lines if line["kind"] == "machine"))


def _known(row: Row) -> bool:
    return bool(row["ended"]) or row["value"] is not None


if __name__ == "__main__":
    sys.exit(main())
