"""Examples in docstrings as code: to Markdown their prompts would be quotations."""

import re
from typing import Any

from griffe import Extension

_EXAMPLE = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)


class Doctests(Extension):
    """Fences every example of every docstring."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Change a docstring as soon as it was read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Return the text with a fence around each example.

    >>> fenced("Add.\\n\\n>>> 1 + 1\\n2").splitlines()
    ['Add.', '', '```pycon', '>>> 1 + 1', '2', '```']
    """
    return _EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", text)
