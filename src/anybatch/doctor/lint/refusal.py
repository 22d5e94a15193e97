"""Why nothing can be said about a script: it is none."""

from anybatch.errors import AnybatchError


class NotPython(AnybatchError, ValueError):
    """A file that is no Python."""

    def __init__(self, file: str, line: int, why: str) -> None:
        super().__init__(file, line, why)
        self.file = file
        self.line = line
        self.why = why

    def __str__(self) -> str:
        where = f" at line {self.line:,}" if self.line else ""
        return f"`{self.file}` cannot be read as Python{where}: {self.why}; lint takes a script that runs"
