"""How commands explain themselves, and what programs get where a command was called wrongly."""

import inspect
import json
from collections.abc import Callable, Sequence
from typing import Any

from typer.core import TyperCommand, TyperGroup


class PlainCommand(TyperCommand):
    """A command whose flags stand without a type: `--json <bool>` would ask for a value."""

    def get_params(self, ctx: Any) -> Any:
        return _plain_flags(super().get_params(ctx))


class PlainGroup(TyperGroup):
    """The commands together: with `--json` wrong arguments are a document too."""

    def get_params(self, ctx: Any) -> Any:
        return _plain_flags(super().get_params(ctx))

    def make_context(self, info_name: str | None, args: Any, parent: Any = None, **extra: Any) -> Any:
        given = tuple(args)
        context = _told(given, lambda: super(PlainGroup, self).make_context(info_name, args, parent, **extra))
        context.obj = given
        return context

    def invoke(self, ctx: Any) -> Any:
        return _told(ctx.obj, lambda: super(PlainGroup, self).invoke(ctx))


def unwrapped(command: Callable[..., Any]) -> str:
    """Return a command's docstring with its paragraphs in one line each: a terminal knows its own width."""
    text = inspect.getdoc(command) or ""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _plain_flags(parameters: Any) -> Any:
    for one in parameters:
        if getattr(one, "is_flag", False):
            one.metavar = ""
    return parameters


def _told(given: Sequence[str], work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        # the error's class lies in click, or in what the framework has made of it
        message = getattr(error, "format_message", None)
        if message is not None and "--json" in given:
            print(json.dumps({"error": message()}))
        raise
