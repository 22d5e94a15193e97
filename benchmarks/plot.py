"""The results as horizontal bars on a logarithmic scale, readable on light and on dark pages.

A bar is the median of all rounds, and a thin line goes from the lowest round to the highest.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measures import MEASURES, measure_of
from benchmarks.registry import Role, Theme
from benchmarks.report import CaseResult
from benchmarks.summary import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#808080"
COLOURS: dict[Role, str] = {"ours": "#e07b00", "peer": "#4a90d9", "limit": "none"}
# what the browser takes instead of that grey, inside an <img> too
LIGHT_INK, DARK_INK = "#57606a", "#adbac7"
BAR_INCHES, CASE_INCHES = 0.28, 0.9


def draw(path: Path, theme: Theme, results: list[CaseResult]) -> None:
    """Write one SVG with a panel per case. Raises ImportError without matplotlib."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    drawn = [(case, measured(rows)) for case, _, rows in results if measured(rows)]
    if not drawn:
        return
    heights = [CASE_INCHES + BAR_INCHES * len(rows) for _, rows in drawn]
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": theme.name, "text.color": INK}):
        figure, panels = plt.subplots(
            len(drawn), figsize=(9, sum(heights)), squeeze=False, layout="constrained", height_ratios=heights
        )
        for panel, (case, rows) in zip(panels[:, 0], drawn, strict=True):
            _panel(panel, rows)
            panel.set_title(case.title, loc="left", fontsize=10, color=INK)
            panel.set_xlabel(f"{measure_of(case).title(case.unit)}, logarithmic", fontsize=8, color=INK)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, transparent=True, metadata={"Date": None})
        plt.close(figure)
    path.write_text(for_light_and_dark(path.read_text()))


def for_light_and_dark(svg: str) -> str:
    """Let text and lines follow the page's colour scheme; where that is not known they stay grey."""
    style = (
        f"<style>:root{{--ink:{LIGHT_INK}}}"
        f"@media (prefers-color-scheme:dark){{:root{{--ink:{DARK_INK}}}}}</style>"
    )
    before, end, after = svg.replace(INK, f"var(--ink,{INK})").partition("<defs>")
    return f"{before}{style}\n {end}{after}"


def measured(rows: list[Row]) -> list[Row]:
    """Return the rows that have a bar."""
    return [row for row in rows if row.value]


def scale_of(row: Row) -> float:
    """Return what the axis divides by, so that it reads as its title says: GB/s, MiB."""
    if row.measured == "growth":
        return float(1 << 20)
    return 1e9 if row.unit == "bytes" and row.measured == "rate" else 1.0


def whiskers(rows: list[Row]) -> tuple[list[float], list[float]]:
    """Return how far the lowest and the highest round lie from the medians."""
    below = [((row.value or 0.0) - (row.lowest or row.value or 0.0)) / scale_of(row) for row in rows]
    above = [((row.highest or row.value or 0.0) - (row.value or 0.0)) / scale_of(row) for row in rows]
    return below, above


def _panel(panel: "Axes", rows: list[Row]) -> None:
    values = [(row.value or 0.0) / scale_of(row) for row in rows]
    names = [row.contender for row in rows]
    colours = [COLOURS[row.role] for row in rows]
    spread = {"elinewidth": 0.8, "capsize": 2, "ecolor": INK}
    bars = panel.barh(
        names, values, color=colours, edgecolor=INK, linewidth=0.6, xerr=whiskers(rows), error_kw=spread
    )
    labels = [f" {MEASURES[row.measured].words(row.value or 0.0, row.unit)}" for row in rows]
    panel.bar_label(bars, labels, fontsize=8, color=INK)
    panel.set_xscale("log")
    panel.set_xlim(min(values) / 3, max(values) * 6)
    panel.invert_yaxis()
    panel.tick_params(colors=INK, labelsize=8, which="both")
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        panel.spines[side].set_color(INK)
