"""Hand-written training: which loss is derived, for which model, in which loops."""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace

from anybatch.doctor.lint.script import Script
from anybatch.doctor.lint.uses import Reading, Tape
from anybatch.doctor.lint.values import Model

# beyond that a script has written more than anybody reads
_MOST_NODES = 2000


@dataclass(frozen=True, eq=False, slots=True)
class Gradient:
    """One call of `tape.gradient`."""

    tape: Tape
    call: ast.Call
    model: str
    """What the derived variables belong to, as written."""
    kept_as: str
    """The name that the gradients are given."""
    loss: ast.expr
    """The loss, with every name replaced by what it was assigned inside the tape's block."""
    taken: ast.AST
    """Where it is taken: the tape's block, or the call of the function that returns it."""
    loops: tuple[ast.For, ...]
    """The loops of the same function that it is taken in, the outermost first."""
    returned_as: str = ""
    """What the function calls it that returns it."""


def model_of(gradient: Gradient) -> Model | None:
    """Return the model whose variables are derived, if the script shows it there."""
    known = gradient.tape.names.get(gradient.model)
    return known if isinstance(known, Model) else None


def gradients(reading: Reading) -> list[Gradient]:
    """Return every gradient that the script takes of a tape of its own."""
    return reading.once(_gradients)


def gradients_used(reading: Reading) -> list[Gradient]:
    """Return every gradient where it is used: at its tape, or where a function is called that returns it."""
    return [*gradients(reading), *reading.once(_received)]


def _gradients(reading: Reading) -> Iterator[Gradient]:
    for tape in reading.tapes:
        call = _gradient_call(reading.script, tape)
        if call is None or len(call.args) < 2:
            continue
        kept = reading.script.parents.get(call)
        kept_as = ast.unparse(kept.targets[0]) if isinstance(kept, ast.Assign) else ""
        loss = expanded(call.args[0], tape.block)
        loops = loops_around(reading.script, tape.block)
        yield Gradient(tape, call, _owner(call.args[1]), kept_as, loss, tape.block, loops)


def _received(reading: Reading) -> Iterator[Gradient]:
    script = reading.script
    for gradient in gradients(reading):
        function = script.scope(gradient.taken)
        if gradient.loops or not isinstance(function, ast.FunctionDef):
            continue
        place = _place_in_result(function, gradient)
        for kept in script.once(_results_kept, script.tree).get(function.name, []):
            name = None if place is None else _name_at(kept.targets[0], place)
            if name is not None:
                loops = loops_around(script, kept)
                yield replace(gradient, kept_as=name, taken=kept, loops=loops, returned_as=gradient.kept_as)


def _place_in_result(function: ast.FunctionDef, gradient: Gradient) -> tuple[int, ...] | None:
    """Return where in its result a function returns a gradient: (), or (1,) for the second of several."""
    returned = [one.value for one in ast.walk(function) if isinstance(one, ast.Return)]
    if len(returned) != 1 or returned[0] is None:
        return None
    several = returned[0].elts if isinstance(returned[0], ast.Tuple) else None
    for at, value in enumerate(several or [returned[0]]):
        if value is gradient.call or (gradient.kept_as and ast.unparse(value) == gradient.kept_as):
            return (at,) if several else ()
    return None


def _results_kept(tree: ast.AST) -> dict[str, list[ast.Assign]]:
    """Return the statements that keep the result of a function, by its name."""
    found: dict[str, list[ast.Assign]] = {}
    for one in ast.walk(tree):
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call):
            found.setdefault(ast.unparse(one.value.func).removeprefix("self."), []).append(one)
    return found


def _name_at(target: ast.expr, place: tuple[int, ...]) -> str | None:
    """Return the name that one part of a result is given."""
    for at in place:
        if not isinstance(target, ast.Tuple) or at >= len(target.elts):
            return None
        target = target.elts[at]
    return target.id if isinstance(target, ast.Name) else None


def _gradient_call(script: Script, tape: Tape) -> ast.Call | None:
    calls = script.once(_gradient_calls, script.scope(tape.block)).get(tape.name, [])
    return next((call for call in calls if call.lineno >= tape.block.lineno), None)


def _gradient_calls(scope: ast.AST) -> dict[str, list[ast.Call]]:
    """Return the calls of `gradient` by what they are called on, in the order they stand."""
    found: dict[str, list[ast.Call]] = {}
    for call in sorted(calls_in(scope), key=lambda call: call.lineno):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "gradient":
            found.setdefault(ast.unparse(call.func.value), []).append(call)
    return found


def _owner(variables: ast.expr) -> str:
    return ast.unparse(variables.value) if isinstance(variables, ast.Attribute) else ""


def loops_around(script: Script, node: ast.AST) -> tuple[ast.For, ...]:
    """Return the `for` loops that a node lies in, within its function, the outermost first."""
    loops: list[ast.For] = []
    for above in script.above(node):
        if isinstance(above, ast.FunctionDef | ast.Lambda):
            break
        if isinstance(above, ast.For):
            loops.append(above)
    return tuple(reversed(loops))


def expanded(expression: ast.expr, block: ast.With) -> ast.expr:
    """Return an expression with names replaced by what the block assigns to them."""
    assigned: dict[str, ast.expr] = {}
    for statement in block.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                assigned[name] = _substituted(value, assigned)
            case ast.AugAssign(target=ast.Name(id=name), op=kind, value=value):
                sum_of_both = ast.BinOp(ast.Name(name, ast.Load()), kind, value)
                assigned[name] = _substituted(sum_of_both, assigned)
    return _substituted(expression, assigned)


def _substituted(expression: ast.expr, assigned: dict[str, ast.expr]) -> ast.expr:
    result: ast.expr = _Substitution(assigned).visit(copy.deepcopy(expression))
    return result if sum(1 for _ in ast.walk(result)) <= _MOST_NODES else expression


class _Substitution(ast.NodeTransformer):
    def __init__(self, assigned: dict[str, ast.expr]) -> None:
        self.assigned = assigned

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self.assigned.get(node.id, node))


def beside_model(gradient: Gradient) -> ast.expr:
    """Return the loss without the model's own calls: what is made of the predictions."""
    beside: ast.expr = _Without(gradient.model).visit(copy.deepcopy(gradient.loss))
    return beside


class _Without(ast.NodeTransformer):
    """Takes a model's calls out of an expression."""

    def __init__(self, model: str) -> None:
        self.model = model

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if ast.unparse(node.func) == self.model:
            return ast.Constant(0)
        self.generic_visit(node)
        return node


def names_in(node: ast.AST) -> set[str]:
    """Return every name that occurs in a piece of code."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def spelled_in(node: ast.AST) -> set[str]:
    """Return every name that occurs in a piece of code, attributes with what they belong to: `self.sums`."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Attribute):
        owner = node
        while isinstance(owner, ast.Attribute):
            owner = owner.value  # type: ignore[assignment]
        if isinstance(owner, ast.Name):
            return {ast.unparse(node)}
    return set().union(*map(spelled_in, ast.iter_child_nodes(node)))


def calls_in(node: ast.AST) -> Iterator[ast.Call]:
    """Yield every call in a piece of code."""
    return (one for one in ast.walk(node) if isinstance(one, ast.Call))
