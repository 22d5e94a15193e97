"""Plots of what the first batches did to a model: its memory, how noisy gradients are, where time goes."""

import re
from collections.abc import Iterator
from typing import Any

from anybatch.doctor.measure import Asked, TrainingFacts
from anybatch.doctor.report.plots import Plot, axis, marked
from anybatch.train.plan_measured import MeasuredPlan
from anybatch.units import size

_STEPS = 8
"""The curve reaches so many doublings to either side of the noise scale."""

_PARTS = re.compile(r"\d+ parts of (\d+)")


def training_plots(tried: TrainingFacts, asked: Asked) -> Iterator[Plot]:
    """Yield every plot that a trial of the model has something to show for."""
    if isinstance(tried.plan, MeasuredPlan):
        yield from _memory(tried.plan)
    if tried.noise_scale:
        yield _noise(tried.noise_scale, asked.batch_size)
    if tried.forward_seconds:
        yield _times(tried)


def _memory(plan: MeasuredPlan) -> Iterator[Plot]:
    """Yield what uses the bytes, and how the peak goes with the size of a part, both under the limit."""
    yield _uses(plan)
    peaks = peak_by_part(plan)
    if len(peaks) > 1:
        yield _parts(plan, peaks)


def _uses(plan: MeasuredPlan) -> Plot:
    """What uses the bytes, one upon the other, beside what else could be done."""
    ways = {way.name: _mebibytes(way.predicted_peak_bytes) for way in plan.alternatives}
    data: list[dict[str, Any]] = [
        {"type": "bar", "name": use.name, "x": ["this plan"], "y": [_mebibytes(use.n_bytes)]}
        for use in plan.uses
    ]
    if ways:
        bars = {"type": "bar", "name": "instead", "showlegend": False}
        data.append({**bars, "x": list(ways), "y": list(ways.values())})
    layout = {
        "barmode": "stack",
        "xaxis": axis("", type="category"),
        "yaxis": axis("predicted peak, MiB"),
        **_limit(plan.limit_bytes),
    }
    return Plot("memory", "What an update holds at its peak, and what else would fit.", data, layout)


def peak_by_part(plan: MeasuredPlan) -> dict[int, int]:
    """Return the predicted peak of every size of a part that the plan tells of, the smallest first.

    >>> from anybatch.train.plan_alternatives import Alternative
    >>> ways = (Alternative("4 parts of 16", 302, "more steps"), Alternative("mixed precision", 280, "other"))
    >>> peak_by_part(MeasuredPlan(64, 32, 2, 304, 1000, alternatives=ways))
    {16: 302, 32: 304}
    """
    # an alternative is told in words alone
    named = ((_PARTS.fullmatch(way.name), way.predicted_peak_bytes) for way in plan.alternatives)
    peaks = {int(found[1]): n_bytes for found, n_bytes in named if found}
    if plan.micro_batch_size is not None and plan.predicted_peak_bytes is not None:
        peaks[plan.micro_batch_size] = plan.predicted_peak_bytes
    return dict(sorted(peaks.items()))


def _parts(plan: MeasuredPlan, peaks: dict[int, int]) -> Plot:
    sizes, mebibytes = list(peaks), [_mebibytes(one) for one in peaks.values()]
    data: list[dict[str, Any]] = [
        {"type": "scatter", "mode": "lines+markers", "name": "predicted", "x": sizes, "y": mebibytes}
    ]
    if plan.measured:
        seen = [(rows, _mebibytes(n_bytes)) for rows, n_bytes in plan.measured]
        points = {
            "type": "scatter",
            "mode": "markers",
            "name": "measured",
            "marker": {"symbol": "x", "size": 9},
        }
        data.append({**points, "x": [rows for rows, _ in seen], "y": [one for _, one in seen]})
    part = plan.micro_batch_size
    if part in peaks:
        data.append(marked(f"this plan, {part:,}", part, _mebibytes(peaks[part])))
    layout = {
        "xaxis": axis("samples in a part", type="log"),
        "yaxis": axis("peak, MiB", rangemode="tozero"),
        **_limit(plan.limit_bytes),
    }
    caption = "How the peak of an update goes with the size of its parts: predicted, and measured if tried."
    return Plot("memory by part", caption, data, layout)


def _limit(limit_bytes: int | None) -> dict[str, Any]:
    """Return the part of a layout that draws the limit from edge to edge, whatever else is drawn."""
    if limit_bytes is None:
        return {}
    at = _mebibytes(limit_bytes)
    label = {"text": f"limit {size(limit_bytes)}", "textposition": "start", "yanchor": "top"}
    line = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": at, "y1": at, "line": {"dash": "dot"}}
    return {"shapes": [{**line, "label": label}]}


def _mebibytes(n_bytes: int) -> float:
    return round(n_bytes / 2**20, 2)


def _noise(scale: float, batch_size: int | None) -> Plot:
    sizes = sorted({max(1, round(scale * 2.0**step)) for step in range(-_STEPS, _STEPS + 1)})
    data: list[dict[str, Any]] = [_line("this model, these weights", sizes, scale)]
    if batch_size:
        data.append(marked(f"batch {batch_size:,}", batch_size, _signal(batch_size, scale)))
    layout = {
        "xaxis": axis("batch size", type="log"),
        "yaxis": axis("% of a gradient that is signal", range=[0, 100]),
    }
    caption = f"Noise and signal are equal at a batch of {scale:,.0f}; far beyond it, larger gains little."
    return Plot("gradient noise", caption, data, layout)


def _line(name: str, sizes: list[int], scale: float) -> dict[str, Any]:
    signal = [_signal(batch_size, scale) for batch_size in sizes]
    return {"type": "scatter", "mode": "lines", "name": name, "x": sizes, "y": signal}


def _signal(batch_size: int, scale: float) -> float:
    return round(100 * batch_size / (batch_size + scale), 2)


def _times(tried: TrainingFacts) -> Plot:
    milliseconds = {
        "until a batch comes": tried.input_seconds * 1000,
        "through the model": tried.forward_seconds * 1000,
    }
    bars = {"type": "bar", "x": list(milliseconds), "y": [round(one, 3) for one in milliseconds.values()]}
    layout = {"xaxis": axis("", type="category"), "yaxis": axis("milliseconds per batch")}
    slowest = f" Its slowest stage is {tried.slowest_stage}." if tried.slowest_stage else ""
    caption = f"An input slower than the model holds training back.{slowest}"
    return Plot("input against model", caption, [bars], layout)
