"""The results as horizontal bars on a logarithmic scale, readable on light and on dark pages."""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.registry import Role, Theme
from benchmarks.report import RATES, CaseResult, rate_in_words
from benchmarks.summary import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREY = "#808080"
COLOURS: dict[Role, str] = {"ours": "#e07b00", "peer": "#4a90d9", "limit": "none"}
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
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": theme.name, "text.color": GREY}):
        figure, panels = plt.subplots(
            len(drawn), figsize=(9, sum(heights)), squeeze=False, layout="constrained", height_ratios=heights
        )
        for panel, (case, rows) in zip(panels[:, 0], drawn, strict=True):
            _panel(panel, rows)
            panel.set_title(case.title, loc="left", fontsize=10, color=GREY)
            panel.set_xlabel(f"{RATES[case.unit]}, logarithmic", fontsize=8, color=GREY)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, transparent=True, metadata={"Date": None})
        plt.close(figure)


def measured(rows: list[Row]) -> list[Row]:
    """Return the rows that have a bar."""
    return [row for row in rows if row.rate]


def _panel(panel: "Axes", rows: list[Row]) -> None:
    rates = [(row.rate or 0.0) / (1e9 if row.unit == "bytes" else 1) for row in rows]
    names = [row.contender for row in rows]
    colours = [COLOURS[row.role] for row in rows]
    bars = panel.barh(names, rates, color=colours, edgecolor=GREY, linewidth=0.6)
    labels = [f" {rate_in_words(row.rate or 0.0, row.unit)}" for row in rows]
    panel.bar_label(bars, labels, fontsize=8, color=GREY)
    panel.set_xscale("log")
    panel.set_xlim(min(rates) / 3, max(rates) * 6)
    panel.invert_yaxis()
    panel.tick_params(colors=GREY, labelsize=8, which="both")
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        panel.spines[side].set_color(GREY)
