"""Changes to a script's text, and the lines that come out of them."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from anybatch.doctor.lint.script import Script
from anybatch.doctor.lint.values import Step

Place = tuple[int, int]
"""A line, from 1, and a column in bytes, from 0, as the parser counts them."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Put `text` in the place of what lies between two places."""

    start: Place
    end: Place
    text: str


@dataclass(frozen=True, slots=True)
class Patch:
    """New lines for some lines of a script."""

    first: int
    last: int
    text: str


def inserted(at: Place, text: str) -> Edit:
    """Return an edit that only adds."""
    return Edit(at, at, text)


def replaced(node: ast.expr, text: str) -> Edit:
    """Return an edit that puts text in the place of an expression."""
    return Edit((node.lineno, node.col_offset), end_of(node), text)


def argument_added(call: ast.Call, text: str) -> Edit:
    """Return an edit that gives a call one more argument, at its end."""
    line, column = end_of(call)
    comma = ", " if call.args or call.keywords else ""
    return inserted((line, column - 1), comma + text)


def end_of(node: ast.expr | ast.stmt) -> Place:
    """Return where a node ends."""
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def before_step(step: Step) -> Place:
    """Return the place in front of a step's dot."""
    assert isinstance(step.call.func, ast.Attribute)  # noqa: S101 - a step is a method call
    return end_of(step.call.func.value)


def step_text(script: Script, step: Step) -> str:
    """Return a step as it is written, from its dot on."""
    return " ".join(between(script, before_step(step), end_of(step.call)).split()).replace(" .", ".")


def moved(script: Script, step: Step, to: Place) -> list[Edit]:
    """Return the edits that move a step elsewhere; a line that would only say `x = x` goes."""
    gone = Edit(before_step(step), end_of(step.call), "")
    statement = script.statement(step.call)
    if _is_self_assignment(statement, step):
        gone = Edit((statement.lineno, 0), (end_of(statement)[0] + 1, 0), "")
    return [inserted(to, step_text(script, step)), gone]


def _is_self_assignment(statement: ast.stmt, step: Step) -> bool:
    if not isinstance(statement, ast.Assign) or statement.value is not step.call:
        return False
    source = step.call.func.value if isinstance(step.call.func, ast.Attribute) else None
    return isinstance(source, ast.Name) and ast.unparse(statement.targets[0]) == source.id


def between(script: Script, start: Place, end: Place) -> str:
    """Return the text between two places."""
    lines = [line.encode() for line in script.lines[start[0] - 1 : end[0]]]
    lines[-1] = lines[-1][: end[1]]
    lines[0] = lines[0][start[1] :]
    return b"\n".join(lines).decode()


def patch(script: Script, edits: Iterable[Edit]) -> Patch:
    """Return the changed lines."""
    ordered = sorted(edits, key=lambda edit: edit.start)
    first = ordered[0].start[0]
    last = min(len(script.lines), max(edit.end[0] - (edit.end[1] == 0 < edit.start[0]) for edit in ordered))
    last = max(last, ordered[-1].start[0])
    parts, at = [], (first, 0)
    for edit in ordered:
        parts += [between(script, at, edit.start), edit.text]
        at = edit.end
    if at[0] <= last:
        parts.append(between(script, at, (last, len(script.lines[last - 1].encode()))))
    return Patch(first, last, "".join(parts).removesuffix("\n"))
