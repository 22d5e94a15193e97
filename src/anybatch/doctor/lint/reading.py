"""One reading of a script, statement by statement, each name followed from value to value."""

import ast
from collections.abc import Iterable

from anybatch.doctor.lint import chains, numbers
from anybatch.doctor.lint.expressions import Expressions
from anybatch.doctor.lint.script import Script
from anybatch.doctor.lint.uses import Names, Purpose, Reading, Tape
from anybatch.doctor.lint.values import Array, Pipeline, Value

_CHANGE_ELEMENTS = ("map", "apply", "window", "flat_map", "interleave", "as_supervised")
_TRAINING_CALLS = {"train_on_batch", "train_step"}


def read_through(script: Script) -> Reading:
    """Return one reading of the whole script: the module first, then the functions that nobody called."""
    reader = _Statements(script)
    reader.walk(script.tree.body, reader.expressions.module)
    for node in ast.walk(script.tree):
        if isinstance(node, ast.FunctionDef) and node not in reader.expressions.entered:
            reader.expressions.call(node, [], {})
    reader.expressions.ledger.close()
    return reader.expressions.reading


class _Statements:
    """Walks over statements in the order they stand; both branches of an `if` are walked."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.expressions = Expressions(script, self.walk, self._trains)

    def walk(self, body: Iterable[ast.stmt], names: Names) -> Value:
        """Read statements one after the other; return what a `return` among them gives."""
        returned: Value = None
        for statement in body:
            value = self._statement(statement, names)
            returned = returned if value is None else value
        return returned

    def _statement(self, node: ast.stmt, names: Names) -> Value:
        value = self.expressions.value
        match node:
            case ast.FunctionDef():
                names[node.name] = node
            case ast.Assign(targets=targets):
                found = value(node.value, names)
                for target in targets:
                    self.expressions.bind(target, found, names)
            case ast.AnnAssign(value=ast.expr()):
                self.expressions.bind(node.target, value(node.value, names), names)
            case ast.AugAssign(target=ast.Name(id=name)):
                names[name] = numbers.arithmetic(names.get(name), node.op, value(node.value, names))
            case ast.Return():
                return value(node.value, names)
            case ast.Expr():
                value(node.value, names)
            case _:
                return self._block(node, names)
        return None

    def _block(self, node: ast.stmt, names: Names) -> Value:
        match node:
            case ast.If():
                return self._branches(node, names)
            case ast.For():
                return self._loop(node, names)
            case ast.With():
                return self._with(node, names)
            case ast.While():
                return self.walk([*node.body, *node.orelse], names)
            case ast.Try():
                return self._try(node, names)
        return None

    def _branches(self, node: ast.If, names: Names) -> Value:
        self.expressions.value(node.test, names)
        one, other = dict(names), dict(names)
        returned = self.walk(node.body, one), self.walk(node.orelse, other)
        for name in {*one, *other}:
            names[name] = self._joined(names.get(name), one.get(name), other.get(name))
        return self._joined(None, *returned)

    def _joined(self, before: Value, one: Value, other: Value) -> Value:
        both = chains.joined(before, one, other)
        if isinstance(both, Pipeline) and both is not one and both is not other:
            for branch in (one, other):
                self.expressions.ledger.make(both, branch if isinstance(branch, Pipeline) else None)
        return both

    def _loop(self, node: ast.For, names: Names) -> Value:
        found = self.expressions.value(node.iter, names)
        if isinstance(found, Pipeline):
            purpose = Purpose.TRAINING if self._trains(node, names) else Purpose.LOOKING
            self.expressions.ledger.take(found, purpose)
        self._bind_elements(node.target, found, names)
        return self.walk([*node.body, *node.orelse], names)

    def _try(self, node: ast.Try, names: Names) -> Value:
        returned = self.walk(node.body, names)
        for handler in node.handlers:
            self.walk(handler.body, dict(names))
        after = self.walk([*node.orelse, *node.finalbody], names)
        return returned if after is None else after

    def _with(self, node: ast.With, names: Names) -> Value:
        returned = self.walk(node.body, names)
        for item in node.items:
            opened = item.context_expr
            if isinstance(opened, ast.Call) and self._is_tape(opened):
                name = item.optional_vars.id if isinstance(item.optional_vars, ast.Name) else ""
                self.expressions.reading.tapes.append(Tape(node, name, {**self.expressions.module, **names}))
        return returned

    def _is_tape(self, call: ast.Call) -> bool:
        return self.script.dotted(call.func).endswith("GradientTape")

    def _trains(self, node: ast.AST, names: Names, depth: int = 0) -> bool:
        """Whether something inside takes gradients, itself or by a function of the script."""
        calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
        methods = {one.func.attr for one in calls if isinstance(one.func, ast.Attribute)}
        if methods & _TRAINING_CALLS or any(map(self._is_tape, calls)):
            return True
        called = [one.func.id for one in calls if isinstance(one.func, ast.Name)]
        if _TRAINING_CALLS.intersection(called):
            return True
        functions = [self.expressions.lookup(name, names) for name in called] if depth < 3 else []
        return any(
            self._trains(one, names, depth + 1) for one in functions if isinstance(one, ast.FunctionDef)
        )

    def _bind_elements(self, target: ast.expr, found: Value, names: Names) -> None:
        """Bind what a loop gives: of a chain batches of its arrays, if nothing was made of them."""
        for one in ast.walk(target):
            if isinstance(one, ast.Name):
                names[one.id] = None
        if not isinstance(found, Pipeline) or found.first(*_CHANGE_ELEMENTS) or not found.first("batch"):
            return
        counted = isinstance(target, ast.Tuple) and isinstance(target.elts[-1], ast.Tuple)
        element = target.elts[-1] if counted and isinstance(target, ast.Tuple) else target
        batches = tuple(map(_batch_of, found.source.arrays))
        self.expressions.bind(element, batches[0] if len(batches) == 1 else batches, names)


def _batch_of(array: Value) -> Value:
    if not isinstance(array, Array):
        return None
    shape = None if array.shape is None else (None, *array.shape[1:])
    return Array(array.name, shape, array.itemsize, array.order)
