"""The loss of a hand-written loop: what it is made of, its rank, and how the model is called."""

import ast
import re
from collections.abc import Iterator

from anybatch.doctor.findings import Finding
from anybatch.doctor.lint.edits import Edit, argument_added, end_of, inserted, patch
from anybatch.doctor.lint.found import ERROR, NOTE, WARNING, found
from anybatch.doctor.lint.gradients import (
    Gradient,
    beside_model,
    calls_in,
    expanded,
    gradients,
    model_of,
    names_in,
)
from anybatch.doctor.lint.keras_calls import ACT_DIFFERENTLY, reduction_of
from anybatch.doctor.lint.script import Script, calls_kept, classes_in
from anybatch.doctor.lint.uses import Reading
from anybatch.doctor.lint.values import Array

_LABELS = re.compile(r"(y|ys|labels?|targets?)(_.*)?")
_ELEMENTWISE = {"abs", "exp", "log", "log1p", "pow", "softplus", "sqrt", "square", "squared_difference"}
_REDUCES = {"compute_average_loss", "l2_loss", "mean", "moments", "norm", "size", "sum"}
_SHORT_LOSSES = {"KLD", "MAE", "MAPE", "MSE", "MSLE"}
_NO_LOSSES = {"deserialize", "get", "serialize"}
# the others bring labels and predictions to one rank by themselves
_DEMAND_ONE_RANK = {"binary_crossentropy", "binary_focal_crossentropy"}


def labels_forgotten(reading: Reading) -> Iterator[Finding]:
    """AB702: a loss made of predictions alone, with labels at hand."""
    for gradient in gradients(reading):
        if names_in(beside_model(gradient)) - set(reading.script.aliases) or not _calls_model(gradient):
            continue
        if _compares_outputs(gradient):
            continue
        labels = sorted(name for name in _labels_at_hand(gradient) if name not in names_in(gradient.loss))
        if not labels:
            continue
        yield found(
            "AB702",
            ERROR,
            gradient.tape.block,
            what="the loss is made of the model's output alone: the labels are loaded and never used",
            evidence=f"`{labels[0]}` does not occur in the loss, which is `{_shortened(gradient.loss)}`",
            fix=f"loss = loss_fn({labels[0]}, {gradient.model}(x, training=True))"
            "  # loss_fn = tf.keras.losses.CategoricalCrossentropy() or what compile() was given",
        )


def _calls_model(gradient: Gradient) -> bool:
    body = ast.Module(gradient.tape.block.body, [])
    return any(ast.unparse(call.func) == gradient.model for call in calls_in(body))


def _compares_outputs(gradient: Gradient) -> bool:
    """Whether outputs are held against each other, as a critic's for what is real and what is not."""
    return sum(ast.unparse(call.func) == gradient.model for call in calls_in(gradient.loss)) > 1


def _labels_at_hand(gradient: Gradient) -> set[str]:
    targets = [
        one for node in ast.walk(gradient.tape.block) if isinstance(node, ast.Assign) for one in node.targets
    ]
    named = set().union(
        *(names_in(target) for target in [*targets, *(loop.target for loop in gradient.loops)])
    )
    return {name for name in named if _LABELS.fullmatch(name)}


def _shortened(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else text[:57] + "…"


def ranks_differ(reading: Reading) -> Iterator[Finding]:
    """AB705: labels of shape (batch,) against predictions of shape (batch, 1)."""
    for gradient in gradients(reading):
        model = model_of(gradient)
        if model is None or model.units != 1:
            continue
        for call in calls_in(ast.Module(gradient.tape.block.body, [])):
            name = reading.script.dotted(call.func)
            if not name.startswith("keras.losses.") or name.rsplit(".", 1)[-1] not in _DEMAND_ONE_RANK:
                continue
            labels = (
                gradient.tape.names.get(call.args[0].id)
                if call.args and isinstance(call.args[0], ast.Name)
                else None
            )
            if not _is_output(gradient, call):
                continue
            if isinstance(labels, Array) and labels.shape is not None and len(labels.shape) == 1:
                yield _rank_finding(reading, call)


def _is_output(gradient: Gradient, loss: ast.Call) -> bool:
    """Whether what labels are compared with is the model's output as it is."""
    if len(loss.args) < 2:
        return False
    output = expanded(loss.args[1], gradient.tape.block)
    return isinstance(output, ast.Call) and ast.unparse(output.func) == gradient.model


def _rank_finding(reading: Reading, call: ast.Call) -> Finding:
    labels = ast.unparse(call.args[0])
    return found(
        "AB705",
        ERROR,
        call,
        what="labels have shape (batch,) and predictions (batch, 1): Keras 3 refuses to compare them",
        evidence=f"`{labels}` has one dimension, and the model ends in a Dense layer of 1 unit",
        fix=patch(reading.script, [inserted(end_of(call.args[0]), "[:, None]")]),
    )


def not_reduced(reading: Reading) -> Iterator[Finding]:
    """AB706: the gradient of many numbers is the gradient of their sum."""
    for gradient in gradients(reading):
        if not _is_per_record(reading.script, gradient.loss):
            continue
        assigned = _assignment(gradient)
        tf = reading.script.alias_of("tensorflow", "tf")
        fix = f"loss = {tf}.reduce_mean(loss)"
        yield found(
            "AB706",
            WARNING,
            assigned or gradient.call,
            what="the loss is one number per record: its gradient is their sum's and grows with the batch",
            evidence=f"`{_shortened(gradient.loss)}` is not reduced",
            fix=patch(reading.script, _wrapped(assigned.value, f"{tf}.reduce_mean")) if assigned else fix,
        )


def _is_per_record(script: Script, loss: ast.expr) -> bool:
    """Whether a loss is surely one number per record or per element."""
    if isinstance(loss, ast.BinOp):
        sides = _is_per_record(script, loss.left) or _is_per_record(script, loss.right)
        # what is divided by a sum over the batch is a mean once it is summed up
        return sides and not (isinstance(loss.op, ast.Div) and _is_reduced(script, loss.right))
    if not isinstance(loss, ast.Call):
        return False
    name = script.dotted(loss.func)
    last = name.rsplit(".", 1)[-1]
    if name.startswith("keras.losses.") and last not in _NO_LOSSES:
        return last.islower() or last in _SHORT_LOSSES
    if name.startswith("tensorflow.") and last in _ELEMENTWISE:
        return any(calls_in(loss.args[0]) if loss.args else ()) and not _is_reduced(script, loss)
    crossed = name.startswith("tensorflow.nn.") and "cross_entropy" in last
    return crossed or reduction_of(script, loss.func) == "none"


def _is_reduced(script: Script, value: ast.expr) -> bool:
    """Whether an expression is surely one number, or has nothing to do with records."""
    match value:
        case ast.Constant():
            return False
        case ast.BinOp(left=left, right=right):
            return _is_reduced(script, left) or _is_reduced(script, right)
        case ast.Call(func=function, args=args):
            last = script.dotted(function).rsplit(".", 1)[-1]
            if last in _ELEMENTWISE:
                return bool(args) and _is_reduced(script, args[0])
            return "reduce" in last or last in _REDUCES
    return False


def _assignment(gradient: Gradient) -> ast.Assign | None:
    """Return the statement inside the block that gives the loss its last value."""
    name = ast.unparse(gradient.call.args[0])
    assigned = [
        one
        for one in gradient.tape.block.body
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == name
    ]
    return assigned[-1] if assigned else None


def _wrapped(node: ast.expr, function: str) -> list[Edit]:
    start = (node.lineno, node.col_offset)
    return [inserted(start, f"{function}("), inserted(end_of(node), ")")]


def training_forgotten(reading: Reading) -> Iterator[Finding]:
    """AB707: dropout and batch normalisation stay as in use."""
    for gradient in gradients(reading):
        model = model_of(gradient)
        layers = None if model is None else model.layers
        acting = None if layers is None else sorted(ACT_DIFFERENTLY.intersection(layers))
        for call in calls_in(ast.Module(gradient.tape.block.body, [])):
            given = {one.arg for one in call.keywords}
            if ast.unparse(call.func) != gradient.model or given & {"training", None}:
                continue
            if len(call.args) != 1 or _takes_no_training(reading.script, gradient.model):
                continue
            yield found(
                "AB707",
                NOTE if acting == [] else WARNING,
                call,
                what="the model is called without training=True: dropout and normalisation act as in use",
                evidence=_layers_shown(acting),
                fix=patch(reading.script, [argument_added(reading.script, call, "training=True")]),
            )


def _takes_no_training(script: Script, model: str) -> bool:
    """Whether a model is of a class of the script that is no Keras model: it defines `__call__` itself."""
    made = script.once(calls_kept, script.tree).get(model)
    kind = script.once(classes_in, script.tree).get(ast.unparse(made.func)) if made else None
    return kind is not None and any(getattr(one, "name", "") == "__call__" for one in kind.body)


def _layers_shown(acting: list[str] | None) -> str:
    if acting is None:
        return "the script does not show the model's layers"
    if not acting:
        return "none of the layers shown acts differently in training, so nothing changes yet"
    return f"the model has {', '.join(acting)}"


RULES = (labels_forgotten, ranks_differ, not_reduced, training_forgotten)
