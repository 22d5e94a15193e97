"""Gradient accumulation by hand: overlapping slices, no division, leftovers; and slices in stored order."""

import ast
import textwrap
from collections.abc import Iterator, Sequence

from anybatch.doctor.findings import Finding
from anybatch.doctor.lint.accumulations import (
    Accumulation,
    accumulations,
    batches_per_update,
    counter,
    every,
    is_divided,
    steps_of,
)
from anybatch.doctor.lint.algebra import Polynomial, factor_of, number, polynomial
from anybatch.doctor.lint.edits import Edit, end_of, inserted, patch, replaced, starts_its_line
from anybatch.doctor.lint.found import ERROR, NOTE, WARNING, found
from anybatch.doctor.lint.gradients import Gradient, calls_in, gradients_used, names_in
from anybatch.doctor.lint.script import Script
from anybatch.doctor.lint.uses import Names, Reading
from anybatch.doctor.lint.values import Array, Known, Order

_MIXES = ("shuffle", "permutation", "permuted")


def overlapping_slices(reading: Reading) -> Iterator[Finding]:
    """AB701: neighbouring updates share records."""
    for gradient in gradients_used(reading):
        if len(gradient.loops) < 2:
            continue
        outer, inner = gradient.loops[-2:]
        overlapping = [one for one in _slices(inner) if _overlaps(one, outer, inner, gradient.tape.names)]
        if not overlapping:
            continue
        steps = ast.unparse(inner.iter.args[0]) if isinstance(inner.iter, ast.Call) else "accumulation_steps"
        yield found(
            "AB701",
            ERROR,
            overlapping[0],
            what="accumulated slices overlap those of the next update: records are trained on many times",
            evidence=f"`{ast.unparse(overlapping[0].slice)}` moves as far for one `{_target(outer)}` "
            f"as for one `{_target(inner)}`, and there are {steps} of those",
            fix=patch(reading.script, _disjoint(overlapping, outer, inner, steps)),
        )


def _target(loop: ast.For) -> str:
    return ast.unparse(loop.target)


def _slices(loop: ast.For) -> list[ast.Subscript]:
    nodes = (
        one for one in ast.walk(loop) if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Slice)
    )
    return sorted(nodes, key=lambda one: one.lineno)


def _overlaps(one: ast.Subscript, outer: ast.For, inner: ast.For, names: Names) -> bool:
    starts = _starts(one)
    if starts is None or not _counts_up(inner):
        return False
    by_outer, by_inner = factor_of(_target(outer), starts), factor_of(_target(inner), starts)
    if not by_outer or not by_inner:
        return False
    known = _numbers(names)
    assert isinstance(inner.iter, ast.Call)  # noqa: S101 - it counts up
    steps = polynomial(inner.iter.args[0])
    widths = number(by_outer, known), number(by_inner, known), number(steps, known) if steps else None
    if any(width is None for width in widths):
        return by_outer == by_inner
    across, along, times = (width or 0 for width in widths)
    return across < along * times


def _numbers(names: Names) -> dict[str, int]:
    return {
        name: value.value
        for name, value in names.items()
        if isinstance(value, Known) and type(value.value) is int
    }


def _divides(whole: ast.expr, part: ast.expr, names: Names) -> bool:
    """Whether one number is surely a multiple of the other."""
    known = _numbers(names)
    counted, parts = (None if one is None else number(one, known) for one in map(polynomial, (whole, part)))
    return counted is not None and bool(parts) and counted % (parts or 1) == 0


def _starts(one: ast.Subscript) -> Polynomial | None:
    lower = one.slice.lower if isinstance(one.slice, ast.Slice) else None
    return None if lower is None else polynomial(lower)


def _counts_up(loop: ast.For) -> bool:
    return (
        isinstance(loop.iter, ast.Call)
        and ast.unparse(loop.iter.func) == "range"
        and len(loop.iter.args) == 1
    )


def _disjoint(slices: Sequence[ast.Subscript], outer: ast.For, inner: ast.For, steps: str) -> list[Edit]:
    edits = []
    for one in slices:
        starts = _starts(one)
        width = _written(factor_of(_target(inner), starts)) if starts else "batch_size"
        first = f"{_target(outer)} * {steps} + {_target(inner)}"
        edits.append(replaced(one.slice, f"({first}) * {width} : ({first} + 1) * {width}"))
    return edits + _fewer_updates(outer, steps)


def _written(factor: Polynomial) -> str:
    products = [
        "*".join((*([] if times == 1 and names else [str(times)]), *names)) for names, times in factor.items()
    ]
    return products[0] if len(products) == 1 else f"({' + '.join(products)})"


def _fewer_updates(outer: ast.For, steps: str) -> list[Edit]:
    """Return the edit of `range(n // size)`: one update takes so many batches."""
    if not _counts_up(outer) or not isinstance(outer.iter, ast.Call):
        return []
    times = outer.iter.args[0]
    if not isinstance(times, ast.BinOp) or not isinstance(times.op, ast.FloorDiv):
        return []
    return [replaced(times.right, f"({ast.unparse(times.right)} * {steps})")]


def never_divided(reading: Reading) -> Iterator[Finding]:
    """AB703: the sum of k means is k times the mean."""
    for one in accumulations(reading):
        if is_divided(reading.script, one):
            continue
        steps = steps_of(one, reading.script)
        statement = reading.script.statement(one.apply)
        divided = f"{one.name} = [g / {steps} for g in {one.name}]"
        line = inserted((statement.lineno, 0), f"{_indent(reading.script, statement)}{divided}\n")
        scaled = f"loss = loss / {steps}  # inside the tape, so that the sum is the mean over all batches"
        yield found(
            "AB703",
            WARNING,
            one.apply,
            what=f"gradients of {steps} batches are added and never divided: the update is too large",
            evidence=f"`{one.name}` is a sum of means, and nothing scales it, the gradients or the loss",
            fix=scaled
            if one.in_place
            else patch(reading.script, [line])
            if starts_its_line(reading.script, statement)
            else f"{divided}  # in front of apply_gradients",
        )


def _indent(script: Script, statement: ast.stmt) -> str:
    return script.lines[statement.lineno - 1][: statement.col_offset]


def leftovers(reading: Reading) -> Iterator[Finding]:
    """AB704: the last batches of an epoch never reach an update."""
    for one in accumulations(reading):
        condition = every(one, reading.script)
        if not one.gradient.loops:
            yield _left_in_model(one, condition)
        elif condition is not None:
            yield from _left_in_sum(reading.script, one, condition)
        elif len(one.gradient.loops) > 1:
            yield from _left_in_data(one.gradient.loops[-2], one.gradient.tape.names)


def _left_in_sum(script: Script, one: Accumulation, condition: ast.If) -> Iterator[Finding]:
    loop = one.gradient.loops[-1]
    if any(isinstance(node, ast.BoolOp) for node in ast.walk(condition.test)) or _applied_after(
        script, one, loop
    ):
        return
    if _ends_with_update(loop, condition, one.gradient.tape.names):
        return
    steps = steps_of(one, script)
    indent = _indent(script, loop)
    left = counter(condition) or f"not ({ast.unparse(condition.test)})"
    rest = f"\n{indent}if {left}:\n" + _update(condition, one, indent + "    ")
    yield found(
        "AB704",
        WARNING,
        condition,
        what=f"batches after the last multiple of {steps} are accumulated and then dropped",
        evidence=f"the update runs only if `{ast.unparse(condition.test)}`, and none follows the loop",
        fix=patch(script, [inserted(end_of(loop), rest)]),
    )


def _left_in_model(one: Accumulation, condition: ast.If | None) -> Finding:
    """Return what becomes of the last batches where a model accumulates in its own `train_step`."""
    return found(
        "AB704",
        WARNING,
        condition or one.apply,
        what="what is summed up when an epoch ends is added to the next one, and lost after the last",
        evidence=f"`{one.name}` is applied inside train_step alone, and fit does not say when an epoch ends",
        fix='history = ab.fit(model, x, y, batch_size=512, memory="2GiB")  # and no train_step: '
        "it splits batches itself",
    )


def _ends_with_update(loop: ast.For, condition: ast.If, names: Names) -> bool:
    """Whether a loop counts up to a multiple of the batches that one update takes."""
    steps = batches_per_update(condition)
    counted = loop.iter.args[0] if _counts_up(loop) and isinstance(loop.iter, ast.Call) else None
    return steps is not None and counted is not None and _divides(counted, steps, names)


def _update(condition: ast.If, one: Accumulation, indent: str) -> str:
    """Return what an `if` does up to its update, such as dividing the sum, in lines."""
    statements: list[ast.stmt] = []
    for statement in condition.body:
        applies = any(node is one.apply for node in ast.walk(statement))
        if applies or isinstance(statement, ast.Assign | ast.AugAssign | ast.For):
            statements.append(statement)
        if applies:
            break
    return textwrap.indent("\n".join(map(ast.unparse, statements)), indent)


def _applied_after(script: Script, one: Accumulation, loop: ast.For) -> bool:
    body = next(
        (part for part in _bodies(script.parents[loop]) if loop in part),
        [],
    )
    behind = [*loop.orelse, *body[body.index(loop) + 1 :]] if loop in body else [*loop.orelse]
    return any(one.name in names_in(call) for statement in behind for call in calls_in(statement))


def _bodies(node: ast.AST) -> list[list[ast.stmt]]:
    return [
        part
        for part in (getattr(node, name, []) for name in ("body", "orelse", "finalbody"))
        if isinstance(part, list)
    ]


def _left_in_data(outer: ast.For, names: Names) -> Iterator[Finding]:
    times = outer.iter.args[0] if _counts_up(outer) and isinstance(outer.iter, ast.Call) else None
    if not isinstance(times, ast.BinOp) or not isinstance(times.op, ast.FloorDiv):
        return
    if _divides(times.left, times.right, names):
        return
    rounded_up = ast.UnaryOp(
        ast.USub(), ast.BinOp(ast.UnaryOp(ast.USub(), times.left), times.op, times.right)
    )
    yield found(
        "AB704",
        WARNING,
        outer,
        what="records that do not fill the last update are never trained on",
        evidence=f"`{ast.unparse(outer.iter)}` rounds down",
        fix=f"for {_target(outer)} in range({ast.unparse(rounded_up)}):"
        "  # rounds up; weigh the short last part by its size, or let ab.fit do that",
    )


def slices_in_stored_order(reading: Reading) -> Iterator[Finding]:
    """AB601 in a loop over slices."""
    called = {
        getattr(call.func, "attr", reading.script.dotted(call.func)).rsplit(".", 1)[-1]
        for call in calls_in(reading.script.tree)
    }
    if called & set(_MIXES):
        return
    for gradient in gradients_used(reading):
        sliced = _first_sliced(gradient)
        if sliced is None:
            continue
        array = gradient.tape.names.get(ast.unparse(sliced.value))
        drawn = isinstance(array, Array) and array.order is Order.RANDOM
        name = ast.unparse(sliced.value)
        yield found(
            "AB601",
            NOTE if drawn else WARNING,
            sliced,
            what="batches are slices in the order in which the records are stored, the same in every epoch",
            evidence=f"`{ast.unparse(sliced)}`, and nothing in the script shuffles",
            fix=f"order = np.random.permutation(len({name}))  # once per epoch\n"
            f"{name}_batch = {name}[order[start : start + batch_size]]",
        )


def _first_sliced(gradient: Gradient) -> ast.Subscript | None:
    if not gradient.loops:
        return None
    targets = {_target(loop) for loop in gradient.loops}
    slices = (one for one in _slices(gradient.loops[-1]) if isinstance(one.value, ast.Name))
    return next((one for one in slices if names_in(one.slice) & targets), None)


RULES = (overlapping_slices, never_divided, leftovers, slices_in_stored_order)
