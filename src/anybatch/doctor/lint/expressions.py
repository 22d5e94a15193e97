"""What expressions stand for; uses of chains and models inside them are noted on the way."""

import ast
from collections.abc import Callable, Sequence

from anybatch.doctor.lint import chains, gradients, keras_calls, numbers
from anybatch.doctor.lint.script import Script
from anybatch.doctor.lint.uses import Fit, Ledger, Names, Purpose, Reading
from anybatch.doctor.lint.values import Array, Known, Model, Pipeline, Value

_DEEPEST = 8
_MOST_CALLS = 5000
_USUAL_GENERATORS = {"rng", "generator"}
_HELD_OUT_CALLS = {"adapt", "evaluate", "predict", "test_on_batch", "plan", "diagnose"}
_LOOKING_CALLS = {"list", "print"}


class Expressions:
    """Evaluates expressions over what names are known to stand for."""

    def __init__(
        self,
        script: Script,
        walk: Callable[[Sequence[ast.stmt], Names], Value],
        trains: Callable[[ast.AST, Names], bool],
    ) -> None:
        self.reading = Reading(script)
        self.ledger = Ledger(self.reading)
        self.module: Names = {}
        self.entered: set[ast.FunctionDef] = set()
        self._script = script
        self._walk = walk
        self._trains = trains
        self._open: list[ast.FunctionDef] = []
        self._calls = 0
        self._attributes: dict[tuple[ast.AST | None, str], Value] = {}

    def value(self, node: ast.expr | None, names: Names) -> Value:
        """Return what an expression stands for."""
        match node:
            case ast.Constant(value=int() | float() | str() | bool() | None as value):
                return Known(value)
            case ast.Name(id=name):
                return self.lookup(name, names)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple(self.value(part, names) for part in parts)
            case ast.BinOp(left=left, op=kind, right=right):
                return numbers.arithmetic(self.value(left, names), kind, self.value(right, names))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return numbers.arithmetic(Known(0), ast.Sub(), self.value(operand, names))
            case ast.Lambda():
                return node
            case ast.IfExp(body=body, orelse=orelse):
                return chains.joined(None, self.value(body, names), self.value(orelse, names))
            case _:
                return self._compound(node, names)

    def _compound(self, node: ast.expr | None, names: Names) -> Value:
        match node:
            case ast.Attribute():
                return self._attribute(node, names)
            case ast.Subscript():
                return self._subscript(node, names)
            case ast.Call():
                return self._call(node, names)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node, names)
            case ast.NamedExpr(target=target, value=value):
                found = self.value(value, names)
                self.bind(target, found, names)
                return found
        for child in ast.iter_child_nodes(node) if node is not None else ():
            if isinstance(child, ast.expr):
                self.value(child, names)
        return None

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, names: Names
    ) -> Value:
        inner = dict(names)
        for part in node.generators:
            found = self.value(part.iter, inner)
            trains = any("train" in self._last_name(call) for call in gradients.calls_in(node))
            self.ledger.take(found, Purpose.TRAINING if trains else Purpose.LOOKING)
            inner |= dict.fromkeys(gradients.names_in(part.target))
        for made in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.value(made, inner)
        return None

    def _last_name(self, call: ast.Call) -> str:
        return call.func.attr if isinstance(call.func, ast.Attribute) else self._script.dotted(call.func)

    def lookup(self, name: str, names: Names) -> Value:
        """Return what a name stands for here, or in the module."""
        return names[name] if name in names else self.module.get(name)

    def bind(self, target: ast.expr, value: Value, names: Names) -> None:
        """Give a value to a name, or its parts to several."""
        if isinstance(target, ast.Name):
            names[target.id] = self._named(target.id, value)
        elif isinstance(target, ast.Attribute):
            self._attributes[self._place(target)] = self._named(target.attr, value)
            if isinstance(value, Pipeline) and target.attr in self._script.once(
                _mixed_later, self._script.tree
            ):
                self.ledger.leave(value)
        elif isinstance(target, ast.Tuple | ast.List):
            fits = isinstance(value, tuple) and len(value) == len(target.elts)
            parts = value if isinstance(value, tuple) and fits else (None,) * len(target.elts)
            for one, part in zip(target.elts, parts, strict=True):
                self.bind(one, part, names)

    def _place(self, node: ast.Attribute) -> tuple[ast.AST | None, str]:
        """Return what an attribute is kept under: its text, within its class."""
        inside = (one for one in self._script.above(node) if isinstance(one, ast.ClassDef))
        return next(inside, None), ast.unparse(node)

    def _named(self, name: str, value: Value) -> Value:
        if isinstance(value, Pipeline):
            self.ledger.name(value, name)
        if isinstance(value, Model):
            self.reading.models[name] = value
        if isinstance(value, Array) and not value.name:
            return Array(name, value.shape, value.itemsize, value.order)
        return value

    def _attribute(self, node: ast.Attribute, names: Names) -> Value:
        full = self._script.dotted(node)
        if full.endswith("AUTOTUNE"):
            return Known(-1)
        if full.startswith(("numpy.", "tensorflow.")):
            return Known(node.attr)
        kept = self._attributes.get(self._place(node)) if self._attributes else None
        if isinstance(kept, Pipeline):
            return kept
        inner = self.value(node.value, names)
        return inner if node.attr in {"shape", "T"} and isinstance(inner, Array) else None

    def _subscript(self, node: ast.Subscript, names: Names) -> Value:
        held, at = self.value(node.value, names), self.value(node.slice, names)
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return numbers.length_of(held) if at == Known(0) else None
        if isinstance(held, tuple) and isinstance(at, Known) and isinstance(at.value, int):
            return held[at.value] if -len(held) <= at.value < len(held) else None
        return numbers.indexed(held, node.slice, at) if isinstance(held, Array) else None

    def _call(self, node: ast.Call, names: Names) -> Value:
        held = self.value(node.func.value, names) if isinstance(node.func, ast.Attribute) else None
        args = [self.value(arg, names) for arg in node.args]
        given = {one.arg: self.value(one.value, names) for one in node.keywords if one.arg}
        if isinstance(held, Pipeline):
            return self._method(held, node, args, given)
        if isinstance(held, Array) and isinstance(node.func, ast.Attribute):
            return numbers.array_method(held, node.func.attr, args)
        function = self.lookup(node.func.id, names) if isinstance(node.func, ast.Name) else None
        if isinstance(function, ast.FunctionDef):
            return self.call(function, args, given)
        if isinstance(node.func, ast.Name) and node.func.id == "next":
            self.ledger.take(args, self._purpose_of_next(node, names))
            return None
        self._note_use(node, args, given)
        return self._from_outside(node, args, given)

    def _method(self, held: Pipeline, node: ast.Call, args: Sequence[Value], given: Names) -> Value:
        """Return what a method of a chain gives."""
        assert isinstance(node.func, ast.Attribute)  # noqa: S101 - a method is called
        name, first = node.func.attr, args[0] if args else None
        if name == "as_numpy_iterator":
            return held
        if name == "apply" and isinstance(first, ast.FunctionDef):
            self.ledger.leave(held)
            return self.call(first, [held], {})
        chain = chains.extended(held, node, args, given)
        if chain is not None:
            self.ledger.make(chain, held)
        elif name in chains.LOOK_AT:
            self.ledger.take(held, Purpose.LOOKING, node)
        else:
            self.ledger.leave(held)
        return chain

    def call(self, function: ast.FunctionDef, args: Sequence[Value], given: Names) -> Value:
        """Read a function's body with these arguments; return what it returns."""
        self._calls += 1
        # a function that calls itself has nothing new to tell, and several that call each other too much
        if function in self._open or len(self._open) >= _DEEPEST or self._calls > _MOST_CALLS:
            return None
        self.entered.add(function)
        taken = [*function.args.posonlyargs, *function.args.args]
        names: Names = dict.fromkeys(one.arg for one in [*taken, *function.args.kwonlyargs])
        for one, default in zip(reversed(taken), reversed(function.args.defaults), strict=False):
            names[one.arg] = self.value(default, self.module)
        names |= dict(zip((one.arg for one in taken), args, strict=False)) | given
        self._open.append(function)
        returned = self._walk(function.body, names)
        self._open.pop()
        if isinstance(returned, Pipeline):
            self.ledger.name(returned, function.name)
        return returned

    def _from_outside(self, node: ast.Call, args: Sequence[Value], given: Names) -> Value:
        """Return what a function gives that is not the script's own."""
        full = self._script.dotted(node.func)
        if full == "len":
            return numbers.length_of(args[0] if args else None)
        if full.startswith("numpy.") or full.split(".")[0] in _USUAL_GENERATORS:
            return numbers.array_call(full.rsplit(".", 1)[-1], args, given)
        chain = chains.source_of(self._script, node, args)
        if chain is not None:
            self.ledger.make(chain)
        return chain or chains.passed_on(full, args) or keras_calls.model_of(self._script, node)

    def _note_use(self, node: ast.Call, args: Sequence[Value], given: Names) -> None:
        full = self._script.dotted(node.func)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else full
        everything = (*args, *given.values())
        if method == "fit":
            self._note_fit(node, args, given)
        elif method in _HELD_OUT_CALLS:
            self.ledger.take(everything, Purpose.HELD_OUT, node)
        elif method in _LOOKING_CALLS:
            self.ledger.take(everything, Purpose.LOOKING, node)
        elif chains.passed_on(full, args) is None and not full.startswith("tensorflow.data."):
            self.ledger.take(everything, Purpose.UNKNOWN, node)

    def _purpose_of_next(self, node: ast.Call, names: Names) -> Purpose:
        """Return what single elements are taken for: to train, if the loop around does."""
        loops = (one for one in self._script.above(node) if isinstance(one, ast.For | ast.While))
        around = next(loops, None)
        return Purpose.TRAINING if around is not None and self._trains(around, names) else Purpose.LOOKING

    def _note_fit(self, node: ast.Call, args: Sequence[Value], given: Names) -> None:
        ours = self._script.dotted(node.func) == "anybatch.fit"
        rest = args[1:] if ours else args
        owner = node.args[0] if ours and node.args else getattr(node.func, "value", None)
        x = rest[0] if rest else given.get("x")
        batch = given.get("batch_size", rest[2] if len(rest) > 2 else None)
        if isinstance(x, Pipeline):
            self.ledger.take(x, Purpose.TRAINING, node)
            step = x.first("batch", "padded_batch")
            batch = step.given.get("batch_size") if step else batch
        self.ledger.take(given.get("validation_data"), Purpose.HELD_OUT, node)
        parent = self._script.parents.get(node)
        kept_as = ast.unparse(parent.targets[0]) if isinstance(parent, ast.Assign) else ""
        self.reading.fits.append(Fit(node, ast.unparse(owner) if owner else "", kept_as, x, batch))


def _mixed_later(tree: ast.AST) -> set[str]:
    """Return the attributes that are shuffled wherever, as `data.train.shuffle(...)` does."""
    methods = (one.func for one in gradients.calls_in(tree) if isinstance(one.func, ast.Attribute))
    mixed = (one.value for one in methods if one.attr == "shuffle")
    return {one.attr for one in mixed if isinstance(one, ast.Attribute)}
