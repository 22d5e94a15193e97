"""Many small scripts in one text."""

from textwrap import dedent


def several(text):
    """Return the scripts of a text, which lines of four dashes keep apart."""
    return [dedent(one).strip("\n") + "\n" for one in text.split("\n----\n")]
