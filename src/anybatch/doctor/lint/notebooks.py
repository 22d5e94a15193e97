"""The code cells of a notebook as one script; magics and shell lines are left out."""

import ast
import json
import os
import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from pathlib import Path

from anybatch.doctor.findings import Finding
from anybatch.doctor.lint.refusal import NotPython

# of the others the rest of the cell is Python still
_OTHER_LANGUAGES = ("bash", "cmd", "html", "javascript", "js", "latex", "markdown", "perl", "ruby", "script")
_NO_CODE = ("cython", "file", "sh", "svg", "system", "sx", "writefile", *_OTHER_LANGUAGES)

_LINE = re.compile(r"(?<=at )line (\d+)")


@dataclass(frozen=True, slots=True)
class Notebook:
    """The code of a notebook, and at which of its lines each code cell starts."""

    text: str
    starts: tuple[int, ...]

    def placed(self, finding: Finding) -> Finding:
        """Return a finding with its line within its cell; which cell that is its evidence says."""
        if finding.line is None:
            return finding
        told = _LINE.sub(lambda one: self._cell_and_line(int(one[1])), finding.evidence)
        evidence = f"{told} ({self._cell_and_line(finding.line)})"
        return replace(finding, evidence=evidence, line=self._within(finding.line), replaces=None)

    def _within(self, line: int) -> int:
        return line - self.starts[bisect_right(self.starts, line) - 1] + 1

    def _cell_and_line(self, line: int) -> str:
        return f"line {self._within(line):,} of code cell {bisect_right(self.starts, line):,}"


def is_notebook(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a notebook, by its name."""
    return os.fspath(path).lower().endswith(".ipynb")


def read_notebook(path: str | os.PathLike[str]) -> Notebook:
    """Return the code of a notebook; a cell that is no Python is refused with its number."""
    file = os.fspath(path)
    lines: list[str] = []
    starts: list[int] = []
    for number, source in enumerate(_sources(file), 1):
        starts.append(len(lines) + 1)
        lines += _python(file, number, source).split("\n")
    return Notebook("\n".join(lines), tuple(starts))


def _sources(file: str) -> list[str]:
    try:
        held = json.loads(Path(file).read_text(encoding="utf-8-sig"))
        cells = [one for one in held["cells"] if one["cell_type"] == "code"]
        return ["".join(one["source"]) for one in cells]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise NotPython(
            file, 0, "it is no notebook with cells, as Jupyter has written them since 2015"
        ) from None


def _python(file: str, number: int, source: str) -> str:
    if _parses(source) is None:
        return source
    plain = "\n".join(_without_magic(source.split("\n")))
    error = _parses(plain)
    if error is not None:
        raise NotPython(file, 0, f"code cell {number:,}, line {error.lineno or 0:,}: {error.msg}")
    return plain


def _parses(source: str) -> SyntaxError | None:
    try:
        ast.parse(source)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxError(str(error))
    return None


def _without_magic(lines: list[str]) -> list[str]:
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%") and first[2:].split(" ")[0].startswith(_NO_CODE):
        return [""] * len(lines)
    return [_plain(line) for line in lines]


def _plain(line: str) -> str:
    """Return a line of Python in the place of a magic, a shell command or a question."""
    code = line.strip()
    indent = line[: len(line) - len(line.lstrip())]
    if code.startswith(("%", "!", "?")) or code.endswith("?"):
        return f"{indent}pass"
    name, equals, value = line.partition("=")
    return f"{name}= None" if equals and value.lstrip().startswith(("!", "%")) else line
