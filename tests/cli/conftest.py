import json

import pytest
from typer.testing import CliRunner

from anybatch.cli import app


class Run:
    """One run of the command line inside this process."""

    def __init__(self, result):
        self.code = result.exit_code
        self.out = result.stdout
        self.err = result.stderr

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def complaint(self):
        """The one line that a failure prints."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        return lines[0]


@pytest.fixture
def anybatch():
    """Run a command; whatever happens, nobody sees a traceback."""

    def run(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.output
        return Run(result)

    return run
