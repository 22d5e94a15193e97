"""What the tables, the plots and the README make of answers."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import figures
from benchmarks.columns import COLUMNS
from benchmarks.figures import second_table
from benchmarks.job import FINISHED, Answer
from benchmarks.measures import MEASURES, times_better
from benchmarks.plot import INK, for_light_and_dark, whiskers
from benchmarks.registry import Case, Measured
from benchmarks.roster import contenders
from benchmarks.rounds import Standing
from benchmarks.summary import Row, exit_code, summarise

MIB = 1 << 20


def rows_of(measured: Measured, theirs: list[Answer], ours: list[Answer]) -> list[Row]:
    case = Case("c", "c", "", "records", contenders("tf.data usual", "anybatch"), measured=measured)
    standings = [
        Standing(one, timed=timed) for one, timed in zip(case.contenders, (theirs, ours), strict=True)
    ]
    return summarise(case, standings, amount=1_000)


def cells_of(row: Row) -> dict[str, str]:
    return {column.heading: column.cell(row) for column in COLUMNS[row.measured]}


def grown(mebibytes: int) -> Answer:
    return Answer(seconds=1.0, after_import_anonymous_bytes=MIB, peak_anonymous_bytes=(mebibytes + 1) * MIB)


def test_less_memory_is_better() -> None:
    theirs, ours = rows_of("growth", [grown(60)], [grown(20)])
    assert (theirs.anybatch_is, ours.anybatch_is) == (3.0, 1.0)
    assert cells_of(theirs)["median"] == "60.0"


def test_the_table_says_where_anybatch_is_slower() -> None:
    theirs, _ = rows_of("rate", [Answer(seconds=1.0)], [Answer(seconds=4.0)])
    assert cells_of(theirs)["anybatch is"] == "0.25x"


def test_a_killed_process_has_an_end_and_no_rate() -> None:
    killed, done = Answer(seconds=1.0, ended="killed by the kernel"), Answer(seconds=2.0, ended=FINISHED)
    theirs, ours = rows_of("survival", [killed], [done])
    assert (theirs.ended, theirs.value) == ("killed by the kernel", None)
    assert (ours.ended, ours.value) == (FINISHED, 500.0)
    assert exit_code([theirs, ours]) == 0


def test_one_bad_end_in_several_rounds_is_the_one_that_is_told() -> None:
    done = Answer(seconds=2.0, ended=FINISHED)
    _, ours = rows_of("survival", [], [done, Answer(seconds=1.0, ended="signal 6"), done])
    assert ours.ended == "signal 6"


@pytest.mark.parametrize("measured", MEASURES)
def test_nothing_is_compared_with_a_figure_that_is_missing(measured: Measured) -> None:
    measure = MEASURES[measured]
    assert times_better(None, 1.0, measure) is times_better(1.0, None, measure) is None


def test_plots_follow_the_scheme_of_the_page() -> None:
    svg = for_light_and_dark(f'<svg><defs></defs><text style="fill: {INK}"/></svg>')
    assert "prefers-color-scheme:dark" in svg
    assert f'style="fill: var(--ink,{INK})"' in svg


def test_a_line_goes_from_the_lowest_round_to_the_highest() -> None:
    theirs, _ = rows_of(
        "rate", [Answer(seconds=seconds) for seconds in (1.0, 2.0, 4.0)], [Answer(seconds=1.0)]
    )
    assert whiskers([theirs]) == ([250.0], [500.0])
    assert whiskers([replace(theirs, lowest=None, highest=None)]) == ([0.0], [0.0])


def test_the_readme_and_the_page_of_the_benchmarks_say_what_the_results_say() -> None:
    for page, said in ((figures.README, figures.tables), (figures.PAGE, figures.pictures)):
        assert page.read_text() == figures.with_figures(page.read_text(), said(figures.RESULTS))


def test_of_several_contenders_under_one_heading_the_fastest_is_told_and_nobody_has_an_empty_column(
    tmp_path: Path,
) -> None:
    names = {"tf.data best": 200.0, "tf.data best, fixed": 250.0, "anybatch": 1_000.0}
    rates = {**names, "Grain": 4_000.0, "bare limit, all cores": 9_000.0}
    rows = [
        {"kind": "summary", "case": case, "contender": name, "rate": rate}
        for case in figures.CASES
        for name, rate in rates.items()
        if (case, name) != ("ragged", "Grain")
    ]
    (tmp_path / "in_order.jsonl").write_text("\n".join(map(json.dumps, rows)))
    heads, _, *body = figures.first_table(tmp_path).splitlines()
    assert heads.endswith("| tf.data, best | Grain | anybatch | bare limit |")
    assert body[0].endswith("| 250 (4.0x) | 4,000 (0.25x) | **1,000** | 9,000 |")
    assert body[-1].endswith("| 250 (4.0x) |  | **1,000** | 9,000 |")


def test_the_readme_tells_of_the_themes_that_were_run_only(tmp_path: Path) -> None:
    summary = {"kind": "summary", "case": "group", "unit": "records", "measured": "survival"}
    killed = {"contender": "model.fit", "ended": "killed by the kernel", "value": None}
    done = {"contender": "ab.fit", "ended": FINISHED, "value": 9.0, "rate": 9.0, "weights_difference": 2e-7}
    lines = [json.dumps(summary | row) for row in (killed, done)]
    (tmp_path / "survival.jsonl").write_text("\n".join(lines))
    (line,) = second_table(tmp_path).splitlines()[2:]
    assert "model.fit killed by the kernel" in line
    assert f"**{FINISHED}, 9 samples/s, weights off by 2.0e-07**" in line


def test_themes_of_another_machine_are_named(tmp_path: Path) -> None:
    more = {"cores": 2, "memory": "4194304 kB", "kernel": "Linux 6", "python": "3.11", "versions": {}}
    kinds = {"in_order": "AMD", "shuffled": "AMD", "cores": "Intel", "survival": "Intel", "resume": "AMD"}
    machines = {theme: {**more, "cpu": cpu} for theme, cpu in kinds.items()}
    rest = "2 cores, 4.0 GiB, Linux 6, Python 3.11, "
    assert figures.where(machines) == f"AMD, {rest}; `cores`, `survival` on Intel, {rest}"
