"""Plots of what the first batches did to a model: how noisy gradients are, and where the time goes."""

from collections.abc import Iterator
from typing import Any

from anybatch.doctor.measure import Asked, TrainingFacts
from anybatch.doctor.report.plots import Plot, axis
from anybatch.train.plan_measured import MeasuredPlan

_STEPS = 8
"""The curve reaches so many doublings to either side of the noise scale."""


def training_plots(tried: TrainingFacts, asked: Asked) -> Iterator[Plot]:
    """Yield every plot that a trial of the model has something to show for."""
    if isinstance(tried.plan, MeasuredPlan):
        yield _memory(tried.plan)
    if tried.noise_scale:
        yield _noise(tried.noise_scale, asked.batch_size)
    if tried.forward_seconds:
        yield _times(tried)


def _memory(plan: MeasuredPlan) -> Plot:
    """What uses the bytes, one upon the other, beside what else could be done, under the limit."""
    ways = {"this plan": 0, **{way.name: way.predicted_peak_bytes for way in plan.alternatives}}
    data: list[dict[str, Any]] = [
        {"type": "bar", "name": use.name, "x": ["this plan"], "y": [_mebibytes(use.n_bytes)]}
        for use in plan.uses
    ]
    others = [_mebibytes(peak) for peak in ways.values()]
    data.append({"type": "bar", "name": "instead", "x": list(ways), "y": others, "showlegend": False})
    if plan.limit_bytes is not None and len(ways) > 1:
        limit = [_mebibytes(plan.limit_bytes)] * len(ways)
        line = {"type": "scatter", "mode": "lines", "name": "limit", "line": {"dash": "dot"}}
        data.append({**line, "x": list(ways), "y": limit})
    layout = {
        "barmode": "stack",
        "xaxis": axis("", type="category"),
        "yaxis": axis("predicted peak, MiB"),
    }
    return Plot("memory", "What an update holds at its peak, and what else would fit.", data, layout)


def _mebibytes(n_bytes: int) -> float:
    return round(n_bytes / 2**20, 2)


def _noise(scale: float, batch_size: int | None) -> Plot:
    sizes = sorted({max(1, round(scale * 2.0**step)) for step in range(-_STEPS, _STEPS + 1)})
    data: list[dict[str, Any]] = [_line("this model, these weights", sizes, scale)]
    if batch_size:
        marked = {"mode": "markers", "marker": {"size": 12}}
        data.append({**_line(f"batch {batch_size:,}", [batch_size], scale), **marked})
    layout = {
        "xaxis": axis("batch size", type="log"),
        "yaxis": axis("% of a gradient that is signal", range=[0, 100]),
    }
    caption = f"Noise and signal are equal at a batch of {scale:,.0f}; far beyond it, larger gains little."
    return Plot("gradient noise", caption, data, layout)


def _line(name: str, sizes: list[int], scale: float) -> dict[str, Any]:
    signal = [round(100 * size / (size + scale), 2) for size in sizes]
    return {"type": "scatter", "mode": "lines", "name": name, "x": sizes, "y": signal}


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
