"""Gradients that are summed up over several batches by hand."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from anybatch.doctor.lint.gradients import Gradient, beside_model, calls_in, gradients, names_in
from anybatch.doctor.lint.keras_calls import reduction_of
from anybatch.doctor.lint.script import Script
from anybatch.doctor.lint.uses import Reading

_ADDS = ("add", "assign_add", "add_n")
_SCALES = ("divide", "truediv", "scalar_mul", "div_no_nan", "multiply")
_APPLIES = ("apply_gradients", "apply")


@dataclass(frozen=True, eq=False, slots=True)
class Accumulation:
    """One accumulator, and where it is applied."""

    gradient: Gradient
    name: str
    in_place: bool
    """The accumulators are variables that are added to, not a list made anew."""
    apply: ast.Call
    scope: ast.AST


def accumulations(reading: Reading) -> list[Accumulation]:
    """Return every accumulation that is applied in the function where it is summed up."""
    return reading.once(_accumulations)


def _accumulations(reading: Reading) -> Iterator[Accumulation]:
    for gradient in gradients(reading):
        if not gradient.loops or not gradient.kept_as:
            continue
        scope = reading.script.scope(gradient.tape.block)
        summed = _accumulator(reading.script, gradient)
        if summed is None:
            continue
        name, in_place = summed
        applied = reading.script.once(_updates, scope).get(name)
        if applied is not None:
            yield Accumulation(gradient, name, in_place, applied, scope)


def _updates(scope: ast.AST) -> dict[str, ast.Call]:
    """Return the first update that takes each name."""
    first: dict[str, ast.Call] = {}
    for call in sorted(calls_in(scope), key=lambda call: call.lineno):
        if isinstance(call.func, ast.Attribute) and call.func.attr in _APPLIES:
            for name in names_in(call):
                first.setdefault(name, call)
    return first


def _accumulator(script: Script, gradient: Gradient) -> tuple[str, bool] | None:
    """Return the name that gradients are added to, and whether in place."""
    for name, names in script.once(_sums, gradient.loops[0]):
        if gradient.kept_as not in names:
            continue
        if name:
            return name, False
        others = sorted(names - {gradient.kept_as, "zip", "enumerate"})
        if others:
            return others[0], True
    return None


def _sums(loop: ast.AST) -> list[tuple[str, set[str]]]:
    """Return every sum in a loop: the name that it is kept as, or "" if it is in place, and all its names."""
    found: list[tuple[str, set[str]]] = []
    for statement in ast.walk(loop):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.ListComp() as made):
                if _adds(made.elt) and name in names_in(made):
                    found.append((name, names_in(made)))
            case ast.For(iter=ast.Call() as pairs, body=body):
                if any(map(_adds, body)):
                    found.append(("", names_in(pairs)))
    return found


def _adds(node: ast.AST) -> bool:
    for one in ast.walk(node):
        if isinstance(one, ast.BinOp | ast.AugAssign) and isinstance(one.op, ast.Add):
            return True
        called = one.func if isinstance(one, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in _ADDS:
            return True
    return False


def is_divided(script: Script, accumulation: Accumulation) -> bool:
    """Whether the loss, the gradients or their sum is scaled anywhere, or the loss is a sum by itself."""
    gradient = accumulation.gradient
    if _is_sum(script, gradient.loss) or _scales(beside_model(gradient)):
        return True
    return not {accumulation.name, gradient.kept_as}.isdisjoint(script.once(_scaled, accumulation.scope))


def _is_sum(script: Script, loss: ast.expr) -> bool:
    """Whether a loss is a sum by itself, or a mean over the whole batch that it is a part of."""
    for call in calls_in(loss):
        if ast.unparse(call.func).endswith(("reduce_sum", "compute_average_loss")):
            return True
        if reduction_of(script, call.func) in {"sum", "none"}:
            return True
    return False


def _scaled(scope: ast.AST) -> set[str]:
    """Return every name in a statement that scales, or that a loop goes over which scales."""
    names: set[str] = set()
    for one in ast.walk(scope):
        if isinstance(one, ast.For) and _scales(one):
            names |= names_in(one.iter)
        elif isinstance(one, ast.stmt) and not hasattr(one, "body") and _scales(one):
            names |= names_in(one)
    return names


def _scales(node: ast.AST) -> bool:
    for one in ast.walk(node):
        if isinstance(one, ast.BinOp | ast.AugAssign) and isinstance(one.op, ast.Div | ast.Mult):
            return True
        called = one.func if isinstance(one, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in _SCALES:
            return True
    return False


def every(accumulation: Accumulation, script: Script) -> ast.If | None:
    """Return the `if i % steps == 0` that the update lies in."""
    for above in script.above(accumulation.apply):
        if isinstance(above, ast.For):
            return None
        if isinstance(above, ast.If) and batches_per_update(above) is not None:
            return above
    return None


def batches_per_update(condition: ast.If) -> ast.expr | None:
    """Return what a condition takes the rest by, or what its counter is held against."""
    return _modulus(condition.test) or (_limit(condition.test) if counter(condition) else None)


def counter(condition: ast.If) -> str:
    """Return the name that counts batches and that the update sets back to 0, or ""."""
    counted = condition.test.left if isinstance(condition.test, ast.Compare) else None
    for statement in condition.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=0)):
                if isinstance(counted, ast.Name) and counted.id == name:
                    return name
    return ""


def _limit(test: ast.expr) -> ast.expr | None:
    match test:
        case ast.Compare(ops=[ast.Eq() | ast.GtE()], comparators=[limit]):
            return limit
    return None


def _modulus(test: ast.expr) -> ast.expr | None:
    found = (
        one.right for one in ast.walk(test) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mod)
    )
    return next(found, None)


def steps_of(accumulation: Accumulation, script: Script) -> str:
    """Return how many batches are summed up, as written."""
    condition = every(accumulation, script)
    several = None if condition is None else batches_per_update(condition)
    if several is not None:
        return ast.unparse(several)
    inner = accumulation.gradient.loops[-1].iter
    if isinstance(inner, ast.Call) and ast.unparse(inner.func) == "range" and len(inner.args) == 1:
        return ast.unparse(inner.args[0])
    return "accumulation_steps"
