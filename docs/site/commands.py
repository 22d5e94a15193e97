"""The reference of the command line, made from the commands themselves whenever the site is built."""

from collections.abc import Iterator
from typing import Any

import typer.main

from anybatch.cli import app

PLACE = "<!-- commands -->"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the commands where a page has room for them."""
    return markdown.replace(PLACE, "\n".join(reference())) if PLACE in markdown else markdown


def reference() -> Iterator[str]:
    """Return a section per command, in Markdown."""
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        yield from section(name, command)


def section(name: str, command: Any) -> Iterator[str]:
    """Return what one command says about itself."""
    context = command.context_class(command, info_name=name)
    yield f"\n## {name}\n"
    yield f"```text\nanybatch {name} {' '.join(command.collect_usage_pieces(context))}\n```\n"
    yield f"{paragraphs(command.help)}\n"
    yield "| | |\n|---|---|"
    for parameter in command.params:
        # in a code span of a table a bar cannot be written at all
        named, told = (text.replace("|", " or ") for text in parameter.get_help_record(context))
        yield f"| `{named}` | {told.replace('[', '*').replace(']', '*')} |"
    if command.epilog:
        yield f"\n```text\n{command.epilog.removeprefix('Example:').strip()}\n```\n"


def paragraphs(text: str) -> str:
    """Return the help without the line breaks that terminals need."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
