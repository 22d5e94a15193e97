"""Put the figures of the kept results into the README: `python -m benchmarks.figures`."""

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.machine import in_words
from benchmarks.report import rate_in_words

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results" / "in_order.jsonl"
START, END = "<!-- figures -->", "<!-- end of figures -->"
CASES = {
    "floats": "100 floats + label, batch 512",
    "bytes784": "784 raw bytes + label, batch 512",
    "images": "150 KB raw images + label, batch 64",
    "ragged": "lists of 0 to 60 integers, strings, batch 512",
}
FASTEST_OF = ("tf.data best", "tf.data best, fixed")


def main() -> int:
    if not RESULTS.exists():
        print(f"there is no {RESULTS.name} yet; `make bench` makes it", file=sys.stderr)
        return 2
    lines = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    readme = ROOT / "README.md"
    before, _, rest = readme.read_text().partition(START)
    _, _, after = rest.partition(END)
    readme.write_text(before + START + "\n" + table(lines) + "\n" + END + after)
    return 0


def table(lines: list[dict[str, Any]]) -> str:
    """Return the rows of the README: rates, and how many times faster anybatch is."""
    machine = next(line for line in lines if line["kind"] == "machine")
    rows = {(line["case"], line["contender"]): line for line in lines if line["kind"] == "summary"}
    heads = (
        "records/s, in file order, checksums checked",
        "tf.data, usual",
        "tf.data, best",
        "anybatch",
        "bare limit",
    )
    body = [row_of(case, title, rows) for case, title in CASES.items()]
    machine_line = f"Measured in one run on {in_words(machine)}. Repeat it with `make bench`."
    return "\n".join([f"| {' | '.join(heads)} |", "|---|---|---|---|---|", *body, "", machine_line])


def row_of(case: str, title: str, rows: dict[tuple[str, str], dict[str, Any]]) -> str:
    """Return one line: what each reaches, and the ratio of anybatch to it in parentheses."""
    ours = rows[case, "anybatch"]["rate"]
    best = max((rows[case, name] for name in FASTEST_OF), key=lambda row: row["rate"])
    others = [rows[case, "tf.data usual"], best]
    cells = [f"{rate_in_words(row['rate'], 'records')} ({ours / row['rate']:.0f}x)" for row in others]
    bare = rows[case, "bare limit, all cores"]["rate"]
    cells += [f"**{rate_in_words(ours, 'records')}**", rate_in_words(bare, "records")]
    return f"| {title} | {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
