"""Changes to a script's text, and the lines that come out of them."""

import ast
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from anybatch.doctor.lint import soundness
from anybatch.doctor.lint.script import Place, Script, Token
from anybatch.doctor.lint.values import Step

_NO_SPACE_BEHIND = set("([{.")
_NO_SPACE_BEFORE = set(")]}.,:")


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
    return Edit(start_of(node), end_of(node), text)


def argument_added(script: Script, call: ast.Call, text: str) -> Edit:
    """Return an edit that gives a call one more argument, at its end."""
    *_, last, closing = tokens_between(script, start_of(call), end_of(call))
    if not call.args and not call.keywords:
        return inserted(closing.start, text)
    if last.text != ",":
        return inserted(last.end, f", {text}")
    if last.end[0] == closing.start[0]:
        return inserted(last.end, f" {text}")
    line = script.lines[last.start[0] - 1]
    return inserted(last.end, f"\n{line[: len(line) - len(line.lstrip())]}{text},")


def start_of(node: ast.expr | ast.stmt) -> Place:
    """Return where a node starts."""
    return node.lineno, node.col_offset


def end_of(node: ast.expr | ast.stmt) -> Place:
    """Return where a node ends."""
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def tokens_between(script: Script, start: Place, end: Place) -> tuple[Token, ...]:
    """Return the words and signs between two places."""
    first = bisect_left(script.tokens, (start,))
    return script.tokens[first : bisect_left(script.tokens, (end,))]


def starts_its_line(script: Script, statement: ast.stmt) -> bool:
    """Whether nothing stands in front of a statement on its line."""
    return not tokens_between(script, (statement.lineno, 0), start_of(statement))


def before_step(script: Script, step: Step) -> Place:
    """Return the place in front of a step's dot, behind what it is called on and its parentheses."""
    assert isinstance(step.call.func, ast.Attribute)  # noqa: S101 - a step is a method call
    called_on = end_of(step.call.func.value)
    closing = [one.end for one in tokens_between(script, called_on, _dot(script, step))]
    return max(closing, default=called_on)


def _dot(script: Script, step: Step) -> Place:
    """Return where a step's dot stands."""
    assert isinstance(step.call.func, ast.Attribute)  # noqa: S101 - a step is a method call
    between = tokens_between(script, end_of(step.call.func.value), end_of(step.call.func))
    return next(one.start for one in between if one.text == ".")


def step_text(script: Script, step: Step) -> str:
    """Return a step on one line, from its dot on, without comments; its strings are as they were."""
    text, before = "", None
    for one in tokens_between(script, _dot(script, step), end_of(step.call)):
        if before is not None:
            text += _gap(script, before, one)
        text += between(script, one.start, one.end)
        before = one
    return text


def _gap(script: Script, one: Token, after: Token) -> str:
    if one.end[0] == after.start[0]:
        return between(script, one.end, after.start)
    return "" if one.text in _NO_SPACE_BEHIND or after.text in _NO_SPACE_BEFORE else " "


def moved(script: Script, step: Step, to: Place) -> list[Edit]:
    """Return the edits that move a step elsewhere; a statement that would only say `x = x` goes."""
    statement = script.statement(step.call)
    gone = _without_step(script, step)
    if _is_self_assignment(statement, step):
        gone = _without_statement(script, statement)
    return [inserted(to, step_text(script, step)), gone]


def _without_step(script: Script, step: Step) -> Edit:
    """Return the edit that takes a step out; comments in front of it stay."""
    start, dot = before_step(script, step), _dot(script, step)
    end = end_of(step.call)
    if not any(line in script.comments for line in range(start[0], dot[0])):
        return Edit(start, end, "")
    rest = tokens_between(script, end, (end[0] + 1, 0))
    if rest or end[0] in script.comments:
        return Edit(dot, end, "")
    return Edit((dot[0], 0), (end[0] + 1, 0), "")


def _without_statement(script: Script, statement: ast.stmt) -> Edit:
    """Return the edit that takes a statement out, with its line if it is alone there."""
    start, end = start_of(statement), end_of(statement)
    before = tokens_between(script, (start[0], 0), start)
    behind = tokens_between(script, end, (end[0] + 1, 0))
    if not before and not behind:
        return Edit((start[0], 0), (end[0] + 1, 0), "")
    if len(behind) > 1:
        return Edit(start, behind[1].start, "")
    return Edit(before[-1].start if before else start, end, "")


def _is_self_assignment(statement: ast.stmt, step: Step) -> bool:
    if not isinstance(statement, ast.Assign) or statement.value is not step.call:
        return False
    source = step.call.func.value if isinstance(step.call.func, ast.Attribute) else None
    return isinstance(source, ast.Name) and ast.unparse(statement.targets[0]) == source.id


def between(script: Script, start: Place, end: Place) -> str:
    """Return the text between two places."""
    lines = [line.encode() for line in script.lines[start[0] - 1 : end[0]]]
    if len(lines) > end[0] - start[0]:
        lines[-1] = lines[-1][: end[1]]
    lines[0] = lines[0][start[1] :]
    return b"\n".join(lines).decode()


def patch(script: Script, edits: Iterable[Edit], *, renamed: str = "") -> Patch | str:
    """Return the changed lines; only the words where putting the lines in would break or undo something.

    `renamed` is the one method that may be called no more.
    """
    ordered = sorted(edits, key=lambda edit: edit.start)
    lines = _changed(script, ordered)
    moves = any(not edit.text for edit in ordered)
    if moves and not soundness.in_one_block(script, [edit.start for edit in ordered]):
        return _told(ordered)
    kept = soundness.keeps(script, lines.first, lines.last, lines.text, renamed)
    return lines if kept else _told(ordered)


def _changed(script: Script, ordered: list[Edit]) -> Patch:
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


def _told(edits: list[Edit]) -> str:
    added = [edit for edit in edits if edit.text.strip()]
    return "\n".join(f"{edit.text.strip()}  # belongs into line {edit.start[0]}" for edit in added)
