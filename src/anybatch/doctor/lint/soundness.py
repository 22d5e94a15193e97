"""One law for all proposed lines: put in, they parse, and no call and no text of the script is lost."""

import ast
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence

from anybatch.doctor.lint.script import Place, Script

_PARTS = ("body", "orelse", "finalbody", "handlers", "cases")
# makes lines that are indented a block of their own
_WRAPPED = "if True:\n"

_Block = list[ast.stmt]


def keeps(script: Script, first: int, last: int, text: str, renamed: str = "") -> bool:
    """Whether a script with new lines still parses and still calls every method that it called there.

    Only the innermost statements around the lines that can stand alone are parsed.
    """
    for start, end in _ranges_around(script, first, last):
        old = script.lines[start - 1 : end]
        new = [*old[: first - start], *([text] if text else []), *old[last - start + 1 :]]
        before, after = _parsed(old), _parsed(new)
        if before is not None and after is not None:
            return not set(_held(before) - _held(after)) - {renamed}
    return False


def in_one_block(script: Script, places: Sequence[Place]) -> bool:
    """Whether places lie in one function and under the same conditions."""
    innermost = {id(list(_blocks_around(script, line, line))[-1]) for line, _ in places}
    return len(innermost) == 1


def _parsed(lines: Sequence[str]) -> ast.Module | None:
    text = "\n".join(lines)
    try:
        return ast.parse(_WRAPPED + text if text[:1].isspace() else text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _held(tree: ast.Module) -> Counter[str]:
    """Return the methods that are called and the texts that are written, each with how often."""
    held: Counter[str] = Counter()
    for one in ast.walk(tree):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute):
            held[one.func.attr] += 1
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            held[repr(one.value)] += 1
    return held


def _ranges_around(script: Script, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the lines of the statements around some lines, the innermost first, the whole script last."""
    for block in reversed(list(_blocks_around(script, first, last))):
        inside = _overlapping(block, first, last)
        if not inside:
            continue
        start, end = _first_line(inside[0]), max(map(_last_line, inside))
        before = script.lines[start - 1].encode()[: inside[0].col_offset]
        if start <= first and end >= last and not before.strip():
            yield start, end
    yield 1, len(script.lines)


def _blocks_around(script: Script, first: int, last: int) -> Iterator[_Block]:
    """Yield the blocks of statements that hold some lines, the outermost first."""
    block: _Block | None = script.tree.body
    while block:
        yield block
        inside = _overlapping(block, first, last)
        around = (one for one in inside if _first_line(one) <= first and _last_line(one) >= last)
        holder = next(around, None)
        block = None if holder is None else _block_inside(holder, first, last)


def _overlapping(block: _Block, first: int, last: int) -> _Block:
    return block[bisect_left(block, first, key=_last_line) : bisect_right(block, last, key=_first_line)]


def _block_inside(node: ast.AST, first: int, last: int) -> _Block | None:
    """Return the one of a statement's blocks that holds the lines, if one does."""
    for part in (getattr(node, name, None) for name in _PARTS):
        if not isinstance(part, list) or not part or isinstance(node, ast.Lambda | ast.IfExp):
            continue
        if not isinstance(part[0], ast.stmt):
            inner = (_block_inside(one, first, last) for one in part)
            found = next((one for one in inner if one is not None), None)
            if found is not None:
                return found
        elif _first_line(part[0]) <= first and _last_line(part[-1]) >= last:
            return part
    return None


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min(node.lineno, *(one.lineno for one in decorators)) if decorators else node.lineno


def _last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno
