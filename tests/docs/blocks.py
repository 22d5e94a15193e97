"""The code of a page: what a reader sees, and what a comment hides."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

_FENCE = re.compile(
    r'^(?P<indent> *)```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<code>.*?)^ *```$',
    re.MULTILINE | re.DOTALL,
)
_HIDDEN = re.compile(r"^<!-- run\n(?P<code>.*?)^-->$", re.MULTILINE | re.DOTALL)

NOT_CODE = {"text", "json", "toml"}


@dataclass(frozen=True, slots=True)
class Block:
    """Some lines of a page that can run."""

    line: int
    language: str
    code: str
    title: str | None = None


def pages():
    """Every page, and the first page of the project."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def blocks_of(page):
    """Return what a page wants to be run, in its order."""
    text = page.read_text()
    shown = [
        Block(_line(text, one), one["language"], _dedented(one), one["title"])
        for one in _FENCE.finditer(text)
    ]
    hidden = [Block(_line(text, one), "python", one["code"]) for one in _HIDDEN.finditer(text)]
    return sorted(
        (one for one in shown + hidden if one.language not in NOT_CODE), key=lambda block: block.line
    )


def needs_tensorflow(page):
    """Whether a page cannot run without the framework."""
    return any(re.search(r"keras|tensorflow|\btf\.|ab\.fit", one.code) for one in blocks_of(page)) or (
        page.parent.name == "codes"
    )


def _line(text, found):
    return text.count("\n", 0, found.start()) + 1


def _dedented(found):
    indent = len(found["indent"])
    return "".join(line[indent:] or "\n" for line in found["code"].splitlines(keepends=True))
