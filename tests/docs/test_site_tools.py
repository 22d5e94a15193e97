"""What makes the generated parts of the site."""

import doctest
import importlib.util

import pytest

from anybatch.cli import app
from tests.docs.blocks import DOCS


def tool(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / "site" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["doctests", "recording"])
def test_the_examples_of_the_tools_hold(name):
    found = doctest.testmod(tool(name))
    assert found.attempted > 0
    assert not found.failed


def test_every_command_and_every_option_is_in_the_reference():
    text = "\n".join(tool("commands").reference())
    for command in app.registered_commands:
        assert f"## {command.name}\n" in text
    assert "`--json`" in text
    assert "`--to DIR`" in text
    assert "`--engine <local or ray>`" in text


def test_a_recording_shows_every_line_and_takes_no_input_for_markup():
    recording = tool("recording")
    lines = [recording.Line(at, f"line {at} <&>") for at in range(recording.ROWS + 5)]
    picture = recording.picture(lines)
    assert picture.count("<text") == len(lines)
    assert "<&>" not in picture
    assert "0.00%{transform:translateY(0px)}" in picture
    assert f"#page{{transform:translateY({-5 * recording.LINE_HEIGHT}px)" in picture
