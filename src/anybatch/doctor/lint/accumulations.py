"""Gradients that are summed up over several batches by hand."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from anybatch.doctor.lint.gradients import Gradient, beside_model, calls_in, gradients, names_in
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


def accumulations(reading: Reading) -> Iterator[Accumulation]:
    """Yield every accumulation that is applied in the function where it is summed up."""
    for gradient in gradients(reading):
        if not gradient.loops or not gradient.kept_as:
            continue
        scope = reading.script.scope(gradient.tape.block)
        summed = _accumulator(gradient)
        if summed is None:
            continue
        name, in_place = summed
        applied = (
            call
            for call in calls_in(scope)
            if isinstance(call.func, ast.Attribute) and call.func.attr in _APPLIES and name in names_in(call)
        )
        first = min(applied, key=lambda call: call.lineno, default=None)
        if first is not None:
            yield Accumulation(gradient, name, in_place, first, scope)


def _accumulator(gradient: Gradient) -> tuple[str, bool] | None:
    """Return the name that gradients are added to, and whether in place."""
    for statement in ast.walk(gradient.loops[0]):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.ListComp() as made):
                if _adds(made.elt) and {name, gradient.kept_as} <= names_in(made):
                    return name, False
            case ast.For(iter=ast.Call() as pairs, body=body):
                others = sorted(names_in(pairs) - {gradient.kept_as, "zip", "enumerate"})
                if gradient.kept_as in names_in(pairs) and others and any(map(_adds, body)):
                    return others[0], True
    return None


def _adds(node: ast.AST) -> bool:
    for one in ast.walk(node):
        if isinstance(one, ast.BinOp | ast.AugAssign) and isinstance(one.op, ast.Add):
            return True
        called = one.func if isinstance(one, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in _ADDS:
            return True
    return False


def is_divided(accumulation: Accumulation) -> bool:
    """Whether the loss, the gradients or their sum is scaled anywhere, or the loss is a sum by itself."""
    gradient = accumulation.gradient
    if "reduce_sum" in ast.unparse(gradient.loss) or _scales(beside_model(gradient)):
        return True
    concerned = {accumulation.name, gradient.kept_as}
    statements = (node for node in ast.walk(accumulation.scope) if isinstance(node, ast.stmt))
    simple = (one for one in statements if not hasattr(one, "body"))
    loops = (one for one in ast.walk(accumulation.scope) if isinstance(one, ast.For))
    paired = (one for one in loops if concerned & names_in(one.iter))
    return any(_scales(one) for one in (*simple, *paired) if concerned & names_in(one))


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
        if isinstance(above, ast.If) and _modulus(above.test) is not None:
            return above
    return None


def _modulus(test: ast.expr) -> ast.expr | None:
    found = (
        one.right for one in ast.walk(test) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mod)
    )
    return next(found, None)


def steps_of(accumulation: Accumulation, script: Script) -> str:
    """Return how many batches are summed up, as written."""
    condition = every(accumulation, script)
    modulus = None if condition is None else _modulus(condition.test)
    if modulus is not None:
        return ast.unparse(modulus)
    inner = accumulation.gradient.loops[-1].iter
    if isinstance(inner, ast.Call) and ast.unparse(inner.func) == "range" and len(inner.args) == 1:
        return ast.unparse(inner.args[0])
    return "accumulation_steps"
