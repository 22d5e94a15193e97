"""What a script does when training fails: which errors it expects, and what it tries next."""

import ast
from collections.abc import Iterator

from anybatch.doctor.findings import Finding
from anybatch.doctor.lint.edits import Patch, patch, replaced
from anybatch.doctor.lint.found import ERROR, WARNING, found
from anybatch.doctor.lint.gradients import calls_in
from anybatch.doctor.lint.script import Script, calls_kept, functions_in
from anybatch.doctor.lint.uses import Reading

_TRAINS = {"fit", "train_on_batch", "apply_gradients", "GradientTape", "train_step"}
_EVERYTHING = {"", "Exception", "BaseException"}
_EXHAUSTED = {"tensorflow.errors.ResourceExhaustedError", "MemoryError"}
_KEEPS_BATCH = ("accum", "steps", "micro", "learning_rate", "lr")
_TF_ERRORS = {
    f"tensorflow.errors.{name}Error"
    for name in (
        *("Aborted", "AlreadyExists", "Cancelled", "DataLoss", "DeadlineExceeded", "FailedPrecondition"),
        *("Internal", "InvalidArgument", "NotFound", "Op", "OutOfRange", "PermissionDenied"),
        *("ResourceExhausted", "Unauthenticated", "Unavailable", "Unimplemented", "Unknown"),
    )
}
_OUTSIDE = """for batch_size in (256, 128, 64):
    try:
        train(build_model(), batch_size)
        break
    except tf.errors.ResourceExhaustedError:
        pass  # the next try starts when the failed step's tensors are gone
# or, at the batch size you want: ab.fit(model, x, y, batch_size=256, memory="2GiB")"""


def wrong_error(reading: Reading) -> Iterator[Finding]:
    """AB801: an error that does not mean what the handler takes it for, or that does not exist."""
    for attempt, handler, caught in _handlers(reading.script):
        for name in caught:
            problem = _problem(reading.script, attempt, handler, name)
            if problem is None:
                continue
            exists = not name.startswith("tensorflow.errors.") or name in _TF_ERRORS
            yield found(
                "AB801",
                WARNING if exists else ERROR,
                handler,
                what=problem,
                evidence=f"`except {ast.unparse(handler.type) if handler.type else ''}`",
                fix=_expecting_exhaustion(reading.script, handler),
            )


def _expecting_exhaustion(script: Script, handler: ast.ExceptHandler) -> Patch | str:
    """Return the handler's line with the error that is raised when memory runs out."""
    error = f"{script.alias_of('tensorflow', 'tf')}.errors.ResourceExhaustedError"
    if "tensorflow" not in script.aliases.values():
        # a handler's names are looked up when something fails: without the import it would fail once more
        return f"import tensorflow as tf  # at the top\n\nexcept {error}:"
    if handler.type is None:
        return f"except {error}:"
    return patch(script, [replaced(handler.type, error)])


def _problem(script: Script, attempt: ast.Try, handler: ast.ExceptHandler, name: str) -> str | None:
    if name.startswith("tensorflow.errors.") and name not in _TF_ERRORS:
        return (
            f"there is no `{name.replace('tensorflow', 'tf', 1)}`: naming it raises an AttributeError instead"
        )
    if name.endswith(".OutOfRangeError") and (
        _is_about_memory(handler) or (_trains(script, attempt.body) and not _ends_loop(attempt, handler))
    ):
        return "OutOfRangeError is the end of the data; running out of memory never raises it"
    others = {one for other in attempt.handlers for one in _caught(script, other)}
    if (
        name == "MemoryError"
        and _trains(script, attempt.body)
        and not others & {*_EXHAUSTED - {name}, *_EVERYTHING}
    ):
        return "MemoryError is Python's; TensorFlow raises ResourceExhaustedError when it runs out of memory"
    return None


def _ends_loop(attempt: ast.Try, handler: ast.ExceptHandler) -> bool:
    """Whether a handler ends a loop or a function, or what is tried takes from an iterator."""
    leaves = (one for node in handler.body for one in ast.walk(node))
    return any(isinstance(one, ast.Break | ast.Return) for one in leaves) or "next" in _called(attempt.body)


def _is_about_memory(handler: ast.ExceptHandler) -> bool:
    words = ast.unparse(handler).lower()
    return "memory" in words or "oom" in words


def _handlers(script: Script) -> Iterator[tuple[ast.Try, ast.ExceptHandler, list[str]]]:
    for node in script.once(_attempts, script.tree):
        for handler in node.handlers:
            yield node, handler, _caught(script, handler)


def _attempts(tree: ast.AST) -> list[ast.Try]:
    return [one for one in ast.walk(tree) if isinstance(one, ast.Try)]


def _caught(script: Script, handler: ast.ExceptHandler) -> list[str]:
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return [script.dotted(one).replace(".errors_impl.", ".errors.") for one in types]


def _called(nodes: list[ast.stmt]) -> set[str]:
    """Return the last names of everything that some statements call."""
    return {ast.unparse(call.func).rsplit(".", 1)[-1] for node in nodes for call in calls_in(node)}


def _trains(script: Script, body: list[ast.stmt]) -> bool:
    """Whether statements train, themselves or by a function of the script."""
    functions = script.once(functions_in, script.tree)
    inner = [functions[name].body for name in _called(body) if name in functions]
    return any(
        _is_training(script, call) for part in (body, *inner) for node in part for call in calls_in(node)
    )


def _is_training(script: Script, call: ast.Call) -> bool:
    if ast.unparse(call.func).rsplit(".", 1)[-1] not in _TRAINS:
        return False
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    made = owner if isinstance(owner, ast.Call) else None
    if isinstance(owner, ast.Name):
        made = script.once(calls_kept, script.tree).get(owner.id)
    # what scikit-learn fits are mostly scalers and encoders
    return made is None or not script.dotted(made.func).startswith("sklearn.")


def everything_swallowed(reading: Reading) -> Iterator[Finding]:
    """AB802: a failed training that looks like a finished one."""
    for attempt, handler, caught in _handlers(reading.script):
        if not set(caught) & _EVERYTHING or not _trains(reading.script, attempt.body):
            continue
        ends = _called(handler.body) & {"exit", "_exit", "abort"}
        if ends or any(isinstance(one, ast.Raise) for node in handler.body for one in ast.walk(node)):
            continue
        yield found(
            "AB802",
            WARNING,
            handler,
            what="every error of the training is caught: the script goes on as if it had worked",
            evidence=f"`except {caught[0]}:` around training, without raise".replace(" :`", ":`"),
            fix=_expecting_exhaustion(reading.script, handler),
        )


def _meeting_exhaustion(script: Script) -> Iterator[tuple[ast.Try, ast.ExceptHandler]]:
    """Yield the handlers that run when memory runs out: they name it, or catch everything of a training."""
    for attempt, handler, caught in _handlers(script):
        everything = set(caught) & _EVERYTHING and not _expected_before(script, attempt, handler)
        # what cleans up and raises goes on with nothing
        goes_on = not isinstance(handler.body[-1], ast.Raise)
        if set(caught) & _EXHAUSTED or (everything and goes_on and _trains(script, attempt.body)):
            yield attempt, handler


def _expected_before(script: Script, attempt: ast.Try, handler: ast.ExceptHandler) -> bool:
    """Whether an earlier handler of the same attempt takes what TensorFlow raises when memory runs out."""
    earlier = attempt.handlers[: attempt.handlers.index(handler)]
    return any(set(_caught(script, one)) & _EXHAUSTED - {"MemoryError"} for one in earlier)


def retry_inside(reading: Reading) -> Iterator[Finding]:
    """AB803: the handler trains again while the exception still holds the failed step."""
    for attempt, handler in _meeting_exhaustion(reading.script):
        again = _tried_again(reading.script, attempt, handler)
        if not again:
            continue
        yield found(
            "AB803",
            WARNING,
            handler,
            what="training starts again inside except, where the exception holds the failed step's tensors",
            evidence=f"the handler runs {again} again, from where the failed step left the model",
            fix=_OUTSIDE,
        )


def _tried_again(script: Script, attempt: ast.Try, handler: ast.ExceptHandler) -> str:
    around = getattr(script.scope(attempt), "name", "")
    tried = {*_called(attempt.body), *([around] if _trains(script, attempt.body) else [])}
    both = {name for name in _called(handler.body) & tried if _names_training(script, name)}
    if both:
        return f"`{min(both)}`"
    gone_over = {ast.unparse(loop.iter) for loop in _loops(attempt.body)}
    again = (_goes_on(script, loop) or ast.unparse(loop.iter) in gone_over for loop in _loops(handler.body))
    return "a loop over the data" if any(again) else ""


def _loops(body: list[ast.stmt]) -> list[ast.For]:
    return [one for node in body for one in ast.walk(node) if isinstance(one, ast.For)]


def _names_training(script: Script, name: str) -> bool:
    function = script.once(functions_in, script.tree).get(name)
    # callbacks such as on_train_end are told of training and do none
    told = not name.startswith("on_") and any(word in name.lower() for word in ("train", "fit", "step"))
    return told or name in _TRAINS or (function is not None and _trains(script, function.body))


def _goes_on(script: Script, loop: ast.For) -> bool:
    """Whether a loop trains, itself or by something that is called so."""
    return _trains(script, loop.body) or any(_names_training(script, name) for name in _called(loop.body))


def smaller_batch(reading: Reading) -> Iterator[Finding]:
    """AB804: another batch size is another training."""
    for _, handler in _meeting_exhaustion(reading.script):
        text = ast.unparse(ast.Module(handler.body, [])).lower()
        reduced = next(filter(_reduces_batch, (one for node in handler.body for one in ast.walk(node))), None)
        if reduced is None or any(word in text for word in _KEEPS_BATCH):
            continue
        yield found(
            "AB804",
            WARNING,
            handler,
            what="the batch gets smaller and nothing makes up for it: more and noisier updates",
            evidence=f"`{ast.unparse(reduced)}`",
            fix='ab.fit(model, x, y, batch_size=batch_size, memory="2GiB")  # the same update in parts',
        )


def _reduces_batch(node: ast.AST) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return _is_batch(name) and _is_smaller(value)
        case ast.AugAssign(target=ast.Name(id=name), op=ast.FloorDiv() | ast.Div() | ast.Sub()):
            return _is_batch(name)
        case ast.keyword(arg="batch_size", value=value):
            return _is_smaller(value)
    return False


def _is_batch(name: str) -> bool:
    return "batch" in name.lower() or name.lower() == "bs"


def _is_smaller(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return isinstance(value.value, int) and not isinstance(value.value, bool) and value.value > 0
    return any(
        isinstance(one, ast.BinOp) and isinstance(one.op, ast.FloorDiv | ast.Div) for one in ast.walk(value)
    )


RULES = (wrong_error, everything_swallowed, retry_inside, smaller_batch)
