"""Gradients that are summed up over several batches by hand."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from anybatch.doctor.lint.gradients import Gradient, beside_model, calls_in, gradients_used, spelled_in
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
    """Return every accumulation that is applied where it is summed up: in a function or a model's step."""
    return reading.once(_accumulations)


def _accumulations(reading: Reading) -> Iterator[Accumulation]:
    script = reading.script
    for gradient in gradients_used(reading):
        scope = script.scope(gradient.taken)
        model = _model_of_step(script, scope)
        if not gradient.kept_as or not (gradient.loops or model):
            continue
        summed = _accumulator(script, gradient, gradient.loops[0] if gradient.loops else scope)
        if summed is None:
            continue
        name, in_place = summed
        # a step may leave the update to another method of its model
        applied = script.once(_updates, model or scope).get(name)
        if applied is not None:
            yield Accumulation(gradient, name, in_place, applied, model or scope)


def _model_of_step(script: Script, scope: ast.AST) -> ast.ClassDef | None:
    """Return the class whose `train_step` a function is: Keras calls it in a loop of its own."""
    above = script.parents.get(scope)
    is_step = isinstance(scope, ast.FunctionDef) and scope.name == "train_step"
    return above if is_step and isinstance(above, ast.ClassDef) else None


def _updates(scope: ast.AST) -> dict[str, ast.Call]:
    """Return the first update that takes each name."""
    first: dict[str, ast.Call] = {}
    for call in sorted(calls_in(scope), key=lambda call: call.lineno):
        if isinstance(call.func, ast.Attribute) and call.func.attr in _APPLIES:
            for name in spelled_in(call):
                first.setdefault(name, call)
    return first


def _accumulator(script: Script, gradient: Gradient, within: ast.AST) -> tuple[str, bool] | None:
    """Return the name that gradients are added to, and whether in place."""
    for name, names in script.once(_sums, within):
        if gradient.kept_as not in names:
            continue
        if name:
            return name, False
        others = sorted(names - {gradient.kept_as, "zip", "enumerate"})
        if others:
            return others[0], True
    return None


def _sums(within: ast.AST) -> list[tuple[str, set[str]]]:
    """Return every sum: the name that it is kept as, or "" if it is in place, and all its names."""
    found: list[tuple[str, set[str]]] = []
    for node in ast.walk(within):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.ListComp() | ast.IfExp() as made):
                # `total = g if total is None else [a + b for a, b in zip(total, g)]`
                added = [one for one in ast.walk(made) if isinstance(one, ast.ListComp) and _adds(one.elt)]
                if added and name in spelled_in(made):
                    found.append((name, spelled_in(made)))
            case ast.For(iter=ast.Call() as pairs, body=body):
                if any(map(_adds, body)):
                    found.append(("", spelled_in(pairs)))
            case ast.Call(
                func=ast.Attribute(value=ast.Subscript(value=summed), attr="assign_add"),
                args=[ast.Subscript(value=added_to), *_],
            ):
                found.append(("", spelled_in(summed) | spelled_in(added_to)))
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
    if gradient.returned_as in script.once(_scaled, script.scope(gradient.tape.block)):
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
            names |= spelled_in(one.iter)
        elif isinstance(one, ast.stmt) and not hasattr(one, "body") and _scales(one):
            names |= spelled_in(one)
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
    """Return what counts batches and is set back to 0 by the update, or ""."""
    counted = condition.test.left if isinstance(condition.test, ast.Compare) else None
    set_back = {ast.unparse(one) for one in map(_set_to_zero, condition.body) if one is not None}
    name = "" if counted is None else ast.unparse(counted)
    return name if name in set_back else ""


def _set_to_zero(statement: ast.stmt) -> ast.expr | None:
    match statement:
        case ast.Assign(targets=[name], value=ast.Constant(value=0)):
            return name
        case ast.Expr(ast.Call(func=ast.Attribute(value=name, attr="assign"), args=[ast.Constant(value=0)])):
            return name
    return None


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
    loops = accumulation.gradient.loops
    inner = loops[-1].iter if loops else None
    if isinstance(inner, ast.Call) and ast.unparse(inner.func) == "range" and len(inner.args) == 1:
        return ast.unparse(inner.args[0])
    return "accumulation_steps"
