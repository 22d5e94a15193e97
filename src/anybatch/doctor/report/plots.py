"""Plots of a diagnosis, as plotly takes them: plain values, and no name in them can be markup."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from anybatch.doctor.checks.order import USUAL_BATCH
from anybatch.doctor.measure import Asked, Facts
from anybatch.doctor.measure.facts import LabelFacts
from anybatch.doctor.mixing import GOOD_ENOUGH, buffered_mix, stored_mix

_CELLS = 120
_MOST_CLASSES = 12
_MOST_SHARDS = 200


@dataclass(frozen=True, slots=True)
class Plot:
    """One figure, and the sentence that says what it shows."""

    name: str
    caption: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]


def plots(facts: Facts, asked: Asked) -> list[Plot]:
    """Return every plot that this data has something to show for."""
    label = facts.sample.label
    found = [*_record_sizes(facts), *_shards(facts)]
    if label is not None and len(label.codes):
        found = [_class_mix(label), *_buffers(facts, label, asked), _counts(label), *found]
    return found


def plain(name: object) -> str:
    """Return a name as plotly shows it literally; it takes text for a little language of tags.

    >>> plain("<b>x</b>"), plain(b"cat")
    ('&lt;b&gt;x&lt;/b&gt;', 'cat')
    """
    text = name.decode(errors="replace") if isinstance(name, bytes) else str(name)
    return escape(text if len(text) <= 40 else text[:39] + "…", quote=False)


def axis(title: str, **more: Any) -> dict[str, Any]:
    """Return an axis with a title that is never cut off."""
    return {"title": {"text": title}, "automargin": True, **more}


def marked(name: str, x: float, y: float) -> dict[str, Any]:
    """Return one point that stands out."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [x],
        "y": [y],
        "marker": {"size": 12},
    }


def _class_name(label: LabelFacts, place: int) -> str:
    value = label.classes[place]
    return f"from {value:.3g}" if label.continuous else plain(value)


def _class_mix(label: LabelFacts) -> Plot:
    cells = np.array_split(label.codes, min(_CELLS, len(label.codes)))
    common = np.argsort(label.counts, kind="stable")[::-1][:_MOST_CLASSES]
    along = np.linspace(0, 100, len(cells)).round(2).tolist()
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "stackgroup": "mix",
            "line": {"width": 0.5},
            "name": _class_name(label, int(place)),
            "x": along,
            "y": [round(float((cell == place).mean()) * 100, 2) for cell in cells],
        }
        for place in sorted(common.tolist())
    ]
    layout = {
        "xaxis": axis("% of the way through the files"),
        "yaxis": axis("% of records", range=[0, 100]),
    }
    what = (
        f"Classes of {plain(label.name)} along the files. Level bands are a good mix; steps are sorted data."
    )
    return Plot("class mix along the files", what, data, layout)


def _buffers(facts: Facts, label: LabelFacts, asked: Asked) -> Iterator[Plot]:
    batch, own = asked.batch_size or USUAL_BATCH, asked.shuffle_buffer
    if not stored_mix(label, batch).is_off:
        return
    sizes = [2**power for power in range(1, max(2, facts.records.bit_length()))] + [facts.records]
    excess = [buffered_mix(label, batch, size, facts.records).excess for size in sizes]
    data: list[dict[str, Any]] = [
        {"type": "scatter", "mode": "lines+markers", "name": "this data", "x": sizes, "y": excess},
        {
            "type": "scatter",
            "mode": "lines",
            "name": "as good as random",
            "x": [sizes[0], sizes[-1]],
            "y": [GOOD_ENOUGH, GOOD_ENOUGH],
            "line": {"dash": "dot"},
        },
    ]
    if own:
        mix = buffered_mix(label, batch, own, facts.records)
        data.append(marked(f"your buffer, {own:,}", own, mix.excess))
    layout = {
        "xaxis": axis("records in the shuffle buffer", type="log"),
        "yaxis": axis("times as uneven as random", type="log"),
    }
    what = f"How uneven batches of {batch:,} are, by shuffle buffer. At 1 they are random draws."
    yield Plot("what a shuffle buffer repairs", what, data, layout)


def _counts(label: LabelFacts) -> Plot:
    common = np.argsort(label.counts, kind="stable")[::-1][:50]
    data = [
        {
            "type": "bar",
            "x": [_class_name(label, int(place)) for place in common],
            "y": label.counts[common].tolist(),
        }
    ]
    layout = {"xaxis": axis(plain(label.name), type="category"), "yaxis": axis("records")}
    return Plot("records per class", "How often each class occurs among the records looked at.", data, layout)


def _record_sizes(facts: Facts) -> Iterator[Plot]:
    bins = facts.sizes.bins
    if bins:
        names = [f"{one.at_least:,} to {one.at_most:,}" for one in bins]
        data = [{"type": "bar", "x": names, "y": [one.records for one in bins]}]
        layout = {"xaxis": axis("bytes", type="category"), "yaxis": axis("records")}
        yield Plot("record sizes", "Bytes per record, framing not counted.", data, layout)


def _shards(facts: Facts) -> Iterator[Plot]:
    shards = facts.shards[:_MOST_SHARDS]
    if len(shards) > 1:
        data = [
            {
                "type": "bar",
                "x": list(range(len(shards))),
                "y": [shard.report.records for shard in shards],
                "text": [plain(shard.report.file[-40:]) for shard in shards],
                "textposition": "none",
                "hovertemplate": "%{text}<br>%{y} records<extra></extra>",
            }
        ]
        layout = {"xaxis": axis("shard"), "yaxis": axis("records")}
        yield Plot("records per shard", "Shards of one size keep workers equally busy.", data, layout)
