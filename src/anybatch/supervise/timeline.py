"""The story of a run as one HTML file: memory over time, restarts and part sizes. It loads nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from anybatch.handover import Orders, place
from anybatch.supervise.observe import Sample
from anybatch.supervise.tell import Summary
from anybatch.supervise.verdict import Cause, Verdict
from anybatch.units import size

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 960, 320, 80, 56, 16, 40
_GRID_LINES = 4
_LABEL_HEIGHT = 13


@dataclass(frozen=True, slots=True)
class Chapter:
    """One attempt, as it is told afterwards."""

    orders: Orders
    verdict: Verdict
    then: str
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class _Scale:
    """From seconds, bytes and rows to places in the picture."""

    start_seconds: float
    seconds: float
    most_bytes: int
    most_rows: int

    def x(self, at_seconds: float) -> float:
        return _LEFT + (_WIDTH - _RIGHT - _LEFT) * (at_seconds - self.start_seconds) / self.seconds

    def y(self, n_bytes: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - n_bytes / self.most_bytes)

    def y_of_part(self, rows: int) -> float:
        return self.y(self.most_bytes * rows / (self.most_rows * 1.05))


def write_timeline(
    file: Path, script: str, summary: Summary, chapters: Sequence[Chapter], start_seconds: float
) -> None:
    """Write the report, whole or not at all."""
    place(file, [timeline(script, summary, chapters, start_seconds).encode()], durable=False)


def timeline(script: str, summary: Summary, chapters: Sequence[Chapter], start_seconds: float) -> str:
    """Return the report as text."""
    most = max([summary.limit_bytes, summary.peak_bytes, 1])
    parts = {sample.part for chapter in chapters for sample in chapter.samples if sample.part}
    scale = _Scale(start_seconds, max(summary.seconds, 0.001), round(most * 1.05), max(parts, default=1))
    lines = (*_parts(scale, chapters), *_part_labels(scale, parts), *_lines(scale, chapters))
    picture = "\n".join((*_grid(scale), *_limit(scale, summary), *lines))
    rows = "\n".join(_row(chapter, start_seconds) for chapter in chapters)
    outcome = "finished" if summary.cause is Cause.FINISHED else f"ended: {summary.cause}"
    return _PAGE.format(
        title=escape(Path(script).name),
        outcome=escape(f"{outcome}, exit code {summary.exit_code}"),
        summary=escape(str(summary)),
        width=_WIDTH,
        height=_HEIGHT,
        picture=picture,
        rows=rows,
    )


def _grid(scale: _Scale) -> Iterator[str]:
    for number in range(_GRID_LINES + 1):
        share = number / _GRID_LINES
        y, x = scale.y(scale.most_bytes * share), scale.x(scale.start_seconds + scale.seconds * share)
        yield f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _text(_LEFT - 8, y + 4, "end", size(round(scale.most_bytes * share)))
        anchor = "end" if number == _GRID_LINES else "middle"
        yield _text(x, _HEIGHT - 16, anchor, f"{scale.seconds * share:,.0f} s")


def _text(x: float, y: float, anchor: str, text: str, kind: str = "axis") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{escape(text)}</text>'


def _limit(scale: _Scale, summary: Summary) -> Iterator[str]:
    y = scale.y(summary.limit_bytes)
    yield f'<line class="limit" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _lines(scale: _Scale, chapters: Sequence[Chapter]) -> Iterator[str]:
    for chapter in chapters:
        if not chapter.samples:
            continue
        points = " ".join(
            f"{scale.x(one.seconds):.1f},{scale.y(one.held_bytes):.1f}" for one in chapter.samples
        )
        yield f'<polyline class="held" points="{points}"/>'
        end = scale.x(chapter.samples[-1].seconds)
        kind = "fine" if chapter.verdict.cause is Cause.FINISHED else "end"
        told = escape(f"attempt {chapter.orders.attempt}: {chapter.verdict.sentence}")
        yield f'<line class="{kind}" x1="{end:.1f}" x2="{end:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}">'
        yield f"<title>{told}</title></line>"


def _parts(scale: _Scale, chapters: Sequence[Chapter]) -> Iterator[str]:
    """Yield how large parts were, as steps: a line for each attempt that came so far."""
    for chapter in chapters:
        trained = [sample for sample in chapter.samples if sample.part]
        if trained:
            steps = " ".join(
                f"H{scale.x(one.seconds):.1f} V{scale.y_of_part(one.part):.1f}" for one in trained
            )
            first, end = trained[0], scale.x(chapter.samples[-1].seconds)
            start = f"M{scale.x(first.seconds):.1f} {scale.y_of_part(first.part):.1f}"
            yield f'<path class="part" d="{start} {steps} H{end:.1f}"/>'


def _part_labels(scale: _Scale, parts: set[int]) -> Iterator[str]:
    """Yield the sizes of parts at their heights on the right, largest first, but those without room."""
    last = float("-inf")
    for rows in sorted(parts, reverse=True):
        y = scale.y_of_part(rows)
        if y - last >= _LABEL_HEIGHT:
            yield _text(_WIDTH - _RIGHT + 8, y + 4, "start", f"{rows:,}", kind="rows")
            last = y


def _row(chapter: Chapter, start_seconds: float) -> str:
    samples = chapter.samples
    last = samples[-1] if samples else None
    peak = max((sample.held_bytes for sample in samples), default=0)
    cells = (
        f"{chapter.orders.attempt:,}",
        f"{samples[0].seconds - start_seconds:,.1f} s" if samples else "",
        f"{last.seconds - samples[0].seconds:,.1f} s" if last else "",
        f"{last.part:,}" if last and last.part else "",
        f"{last.step:,}" if last and last.step else "",
        size(peak),
        chapter.verdict.sentence,
        chapter.then,
    )
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>anybatch run: {title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root {{ color-scheme: light dark; --ink: #222; --paper: #fff; --faint: #666; --line: #e5e5e5;
--held: #2471a3; --bad: #c0392b; --good: #1e8449; --part: #9a5b00 }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e6e6e6; --paper: #17181b; --faint: #a0a0a0;
--line: #33363b; --held: #5dade2; --bad: #ff8a80; --good: #58d68d; --part: #f0b35a }} }}
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
color: var(--ink); background: var(--paper) }}
h1 {{ overflow-wrap: anywhere }} .wide {{ overflow-x: auto }}
svg {{ width: 100%; min-width: 30rem; height: auto }} svg text {{ font-size: 12px; fill: var(--faint) }}
.grid {{ stroke: var(--line) }} .limit {{ stroke: var(--bad); stroke-dasharray: 6 4 }}
.held {{ fill: none; stroke: var(--held); stroke-width: 1.5 }}
.part {{ fill: none; stroke: var(--part) }} svg text.rows {{ fill: var(--part) }}
.end {{ stroke: var(--bad); stroke-width: 2 }} .fine {{ stroke: var(--good); stroke-width: 2 }}
table {{ border-collapse: collapse; width: 100% }} td, th {{ text-align: left; vertical-align: top;
padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line) }}
</style>
<h1>{title}</h1>
<p><b>{outcome}</b>. {summary}.</p>
<div class="wide"><svg viewBox="0 0 {width} {height}" role="img" aria-label="memory and parts over time">
{picture}
</svg></div>
<p>Blue: what the script and its children hold. Dashed: the limit. Red: an attempt ended; green: finished.
Brown, with its own scale on the right: samples in the largest part of a batch.</p>
<div class="wide"><table>
<tr><th>attempt</th><th>began at</th><th>lasted</th><th>part</th><th>step</th><th>peak</th>
<th>how it ended</th><th>then</th></tr>
{rows}
</table></div>
</html>
"""
