"""A sweep as one page."""

from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING

from anybatch.doctor.report import rendered
from anybatch.doctor.report.plots import Plot, axis
from anybatch.doctor.sweep.found import MemoryTrial, Trial
from anybatch.doctor.sweep.judgement import judged_loss
from anybatch.doctor.sweep.memory import told

if TYPE_CHECKING:
    from anybatch.doctor.sweep import Sweep


def page(sweep: "Sweep") -> str:
    """Return the whole page."""
    from anybatch.doctor.sweep import HEADERS

    return rendered(
        title="anybatch sweep",
        verdict=sweep.verdict,
        looked_at=f"{len(sweep.trials)} batch sizes, {sweep.samples:,} samples each, from the same weights",
        findings=None,
        table=(HEADERS, sweep.rows()),
        plan="",
        plots=[*_plots(sweep.trials), *_memory(sweep.memory)],
        shards=(),
        document=sweep.to_json(),
    )


def _plots(trials: tuple[Trial, ...]) -> list[Plot]:
    return [
        _line(trials, "loss", "Loss after the same number of samples: lower is better.", judged_loss),
        _line(trials, "samples per second", "How fast samples pass.", lambda one: one.samples_per_second),
        _line(trials, "peak memory, MiB", "What training took on top.", lambda one: one.peak_bytes / 2**20),
        *_noise(trials),
    ]


def _memory(trials: tuple[MemoryTrial, ...]) -> list[Plot]:
    if not trials:
        return []
    lines = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": way,
            "x": [one.samples for one in some],
            "y": [one.peak_bytes / 2**20 for one in some],
        }
        for way, some in told(trials)
    ]
    layout = {"xaxis": axis("samples"), "yaxis": axis("peak memory, MiB")}
    caption = "What one epoch takes as the data grows: streamed, only the batch counts."
    return [Plot("memory against data size", caption, lines, layout)]


def _line(trials: tuple[Trial, ...], name: str, caption: str, value: Callable[[Trial], float]) -> Plot:
    values = [value(one) for one in trials]
    data = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [one.batch_size for one in trials],
        "y": [one if isfinite(one) else None for one in values],
    }
    layout = {"xaxis": axis("batch size", type="log"), "yaxis": axis(name)}
    return Plot(name, caption, [data], layout)


def _noise(trials: tuple[Trial, ...]) -> list[Plot]:
    scales = [one for one in trials if one.noise_scale is not None]
    if not scales:
        return []
    caption = (
        "The batch at which a gradient is half noise, with the weights that each size ended with: "
        "far below it larger batches learn more per update."
    )
    return [_line(tuple(scales), "gradient noise scale", caption, lambda one: one.noise_scale or 0.0)]
