"""Record a command in a terminal as an animated SVG: `python docs/site/recording.py FILE COMMAND…`.

`make recording` records the doctor for the README. The picture is text with a time for every line; it follows
the reader's light or dark page, shows everything at once to whoever wants no motion, and loads nothing.
"""

import os
import pty
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

COLUMNS, ROWS = 118, 30
LONGEST_PAUSE_SECONDS, SHORTEST_PAUSE_SECONDS = 1.5, 0.15
STAYS_SECONDS = 6.0
LINE_HEIGHT, CHARACTER_WIDTH, MARGIN = 17, 7.83, 12

_COLOURS = re.compile(r"\x1b\[([0-9;]*)m")
_OTHER_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]|\x1b\][^\x07]*\x07|\x1b[=>]")

STYLE = """
svg{--paper:#fbfbfd;--ink:#24292f;--dim:#57606a;--strong:#0550ae}
@media(prefers-color-scheme:dark){svg{--paper:#161b22;--ink:#e6edf3;--dim:#8b949e;--strong:#79c0ff}}
rect{fill:var(--paper);stroke:var(--dim);stroke-opacity:.4}
text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:var(--ink);white-space:pre}
.b{font-weight:600;fill:var(--strong)}
.l{opacity:0;animation:show 1ms steps(1) forwards}
@keyframes show{to{opacity:1}}
@media(prefers-reduced-motion:reduce){.l{animation-delay:0s!important}#page{animation:none!important}}
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a terminal and when it was complete."""

    seconds: float
    text: str
    strong: bool = False


def main() -> None:
    """Run the command, show it, and write the picture."""
    file, *command = sys.argv[1:]
    lines = [Line(0.0, f"$ {shlex.join(command)}", strong=True), *heard(command)]
    Path(file).write_text(picture(paced(lines)), encoding="utf-8")
    print(f"{file}: {len(lines)} lines, {Path(file).stat().st_size:,} bytes", file=sys.stderr)


def heard(command: Sequence[str]) -> Iterator[Line]:
    """Return what a command prints on a terminal, line by line."""
    ours, theirs = pty.openpty()
    begun, rest = time.monotonic(), b""
    size = {"COLUMNS": str(COLUMNS), "LINES": str(ROWS), "TERM": "xterm-256color"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=os.environ | size
    ) as child:
        os.close(theirs)
        while more := _read(ours):
            *whole, rest = (rest + more).split(b"\n")
            for line in whole:
                yield from lines_of(time.monotonic() - begun, line.decode(errors="replace"))
    os.close(ours)
    print(f"exit code {child.returncode}", file=sys.stderr)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        # how Linux says that nobody is at the other end any more
        return b""


def lines_of(seconds: float, raw: str) -> list[Line]:
    """Return a line as a terminal shows it in the end: overwritten by carriage returns, cut at its width.

    >>> lines_of(1.0, "10 %\\r\\x1b[1m100 %\\x1b[0m\\r")
    [Line(seconds=1.0, text='100 %', strong=True)]
    >>> [len(line.text) for line in lines_of(1.0, "x" * 200)]
    [118, 82]
    """
    visible = _OTHER_CODES.sub("", raw).rstrip("\r").rpartition("\r")[2]
    strong = any("1" in found[1].split(";") for found in _COLOURS.finditer(visible))
    text = _COLOURS.sub("", visible).rstrip()
    rows = range(0, max(1, len(text)), COLUMNS)
    return [Line(seconds, text[start : start + COLUMNS].rstrip(), strong) for start in rows]


def paced(lines: Sequence[Line]) -> list[Line]:
    """Return the lines at a pace that can be read along: long pauses cut, bursts spread.

    >>> [line.seconds for line in paced([Line(0, "a"), Line(0, "b"), Line(60, "c")])]
    [0.0, 0.15, 1.65]
    """
    told, before, now = [], 0.0, -SHORTEST_PAUSE_SECONDS
    for line in lines:
        now += min(LONGEST_PAUSE_SECONDS, max(SHORTEST_PAUSE_SECONDS, line.seconds - before))
        before = line.seconds
        told.append(Line(round(now, 2), line.text, line.strong))
    return told


def picture(lines: Sequence[Line]) -> str:
    """Return the lines as one SVG that scrolls when its page is full."""
    width = round(COLUMNS * CHARACTER_WIDTH + 2 * MARGIN)
    height = ROWS * LINE_HEIGHT + 2 * MARGIN
    texts = "\n".join(_text(at, line) for at, line in enumerate(lines) if line.text)
    box = f'viewBox="0 0 {width} {height}" width="{width}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img">\n'
        f"<title>{escape(lines[0].text)}</title>\n<style>{STYLE}{_scrolling(lines)}</style>\n"
        f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>\n'
        f'<svg x="0" y="{MARGIN}" width="{width}" height="{ROWS * LINE_HEIGHT}">\n'
        f'<g id="page">\n{texts}\n</g></svg></svg>\n'
    )


def _text(at: int, line: Line) -> str:
    kind = "l b" if line.strong else "l"
    place = f'x="{MARGIN}" y="{at * LINE_HEIGHT + 13}"'
    return f'<text class="{kind}" {place} style="animation-delay:{line.seconds}s">{escape(line.text)}</text>'


def _scrolling(lines: Sequence[Line]) -> str:
    """Return the steps in which the page moves up, one line at a time; without motion it shows its end."""
    total = lines[-1].seconds + STAYS_SECONDS
    moments = [0.0, *(100 * line.seconds / total for line in lines[ROWS:]), 100.0]
    moved = [*range(len(moments) - 1), len(moments) - 2]
    steps = "".join(f"{at:.2f}%{{{_up(over)}}}" for at, over in zip(moments, moved, strict=True))
    return (
        f"@keyframes up{{{steps}}}\n#page{{{_up(moved[-1])};animation:up {total:.2f}s step-end forwards}}\n"
    )


def _up(lines: int) -> str:
    return f"transform:translateY({-LINE_HEIGHT * lines}px)"


if __name__ == "__main__":
    main()
