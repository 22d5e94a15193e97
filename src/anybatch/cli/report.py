"""What commands print: tables for people, one JSON document for programs."""

import json
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

MOST_ROWS = 40
_BAR_CHARACTERS = 40
_BESIDE_A_BAR = 34
_BETWEEN = "   "
_NARROWEST_COLUMN = 12


def print_json(document: dict[str, object]) -> None:
    """Print a document that any JSON parser takes."""
    print(json.dumps(document, indent=2, allow_nan=False))


def console(at_least: int = 0) -> "Console":
    """Return where reports go. In a pipe lines are as long as they need to be."""
    from rich.console import Console

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    return Console(width=max(width, at_least), highlight=False, markup=False, emoji=False, soft_wrap=False)


def print_table(title: str, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under a title: numbers to the right with their thousands marked, and not too many rows."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
    )
    texts = [[shown(value) for value in row] for row in rows[:MOST_ROWS]]
    widths = [max(map(len, column)) for column in zip(headers, *texts, strict=True)]
    longest = widths.index(max(widths))
    for number, header in enumerate(headers):
        right = bool(rows) and isinstance(rows[0][number], int)
        table.add_column(
            header, justify="right" if right else "left", overflow="fold", no_wrap=number != longest
        )
    for row in texts:
        table.add_row(*row)
    # one column gives way where the terminal is narrow; if that is not enough, the terminal breaks lines
    narrowest = sum(widths) - max(widths) + len(_BETWEEN) * (len(widths) - 1) + _NARROWEST_COLUMN
    console(at_least=narrowest).print(table)
    if len(rows) > MOST_ROWS:
        say(f"… and {len(rows) - MOST_ROWS:,} more; --json lists all")


def say(text: str = "") -> None:
    """Print one line of a report."""
    console().print(text, overflow="fold")


def shown(value: object) -> str:
    """Return a value as it stands in a table.

    >>> shown(1234567), shown(None), shown(0.1)
    ('1,234,567', '', '0.1')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def bar(part: int, largest: int, *, plain: bool = False) -> str:
    """Return a bar of text; whatever is not 0 can be seen.

    >>> bar(1, 2, plain=True), bar(1, 10**9, plain=True), bar(0, 5)
    ('####################', '#', '')
    """
    length = -(-part * _bar_characters() // max(1, largest))
    return ("#" if plain else "█") * length


def _bar_characters() -> int:
    """Return how long a bar may be and still stand in one line with what it belongs to."""
    if not sys.stdout.isatty():
        return _BAR_CHARACTERS
    return min(_BAR_CHARACTERS, max(8, shutil.get_terminal_size().columns - _BESIDE_A_BAR))


def plain_text() -> bool:
    """Whether only ASCII can be printed."""
    return not (sys.stdout.encoding or "").lower().startswith("utf")


def plural(count: int, what: str, several: str | None = None) -> str:
    """Return a count and what is counted.

    >>> plural(1, "shard"), plural(1200, "shard"), plural(2, "stretch", "stretches")
    ('1 shard', '1,200 shards', '2 stretches')
    """
    return f"{count:,} {what if count == 1 else several or what + 's'}"
