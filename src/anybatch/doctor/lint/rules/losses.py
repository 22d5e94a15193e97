"""The loss of a hand-written loop: what it is made of, its rank, and how the model is called."""

import ast
import re
from collections.abc import Iterator

from anybatch.doctor.findings import Finding
from anybatch.doctor.lint.edits import Edit, argument_added, end_of, inserted, patch
from anybatch.doctor.lint.found import ERROR, NOTE, WARNING, found
from anybatch.doctor.lint.gradients import Gradient, beside_model, calls_in, gradients, model_of, names_in
from anybatch.doctor.lint.keras_calls import ACT_DIFFERENTLY
from anybatch.doctor.lint.script import Script
from anybatch.doctor.lint.uses import Reading
from anybatch.doctor.lint.values import Array

_LABELS = re.compile(r"(y|ys|labels?|targets?)(_.*)?")
_PER_ELEMENT = ("tensorflow.square", "tensorflow.abs", "tensorflow.math.", "tensorflow.nn.")
# the others bring labels and predictions to one rank by themselves
_DEMAND_ONE_RANK = {"binary_crossentropy", "binary_focal_crossentropy"}


def labels_forgotten(reading: Reading) -> Iterator[Finding]:
    """AB702: a loss made of predictions alone, with labels at hand."""
    for gradient in gradients(reading):
        if names_in(beside_model(gradient)) - set(reading.script.aliases) or not _calls_model(gradient):
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
            if isinstance(labels, Array) and labels.shape is not None and len(labels.shape) == 1:
                yield _rank_finding(reading, call)


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
    if isinstance(loss, ast.BinOp):
        return _is_per_record(script, loss.left) or _is_per_record(script, loss.right)
    if not isinstance(loss, ast.Call):
        return False
    name = script.dotted(loss.func)
    last = name.rsplit(".", 1)[-1]
    if name.startswith("keras.losses."):
        return last.islower()
    if "reduce" in last or last in {"sum", "mean", "moments"}:
        return False
    return name.startswith(_PER_ELEMENT) or _reduces_nothing(script, loss.func)


def _reduces_nothing(script: Script, function: ast.expr) -> bool:
    """Whether a loss object was made with reduction="none"."""
    made = (
        function
        if isinstance(function, ast.Call)
        else script.once(_made, script.tree).get(ast.unparse(function))
    )
    if made is None or not script.dotted(made.func).startswith("keras.losses."):
        return False
    given = {one.arg: ast.unparse(one.value).strip("'\"").lower() for one in made.keywords}
    return given.get("reduction", "").endswith("none")


def _made(tree: ast.AST) -> dict[str, ast.Call]:
    """Return the calls that names are first given the results of."""
    made: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            made.setdefault(ast.unparse(node.targets[0]), node.value)
    return {name: value for name, value in made.items() if isinstance(value, ast.Call)}


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
            if ast.unparse(call.func) != gradient.model or given & {"training", None} or not call.args:
                continue
            yield found(
                "AB707",
                NOTE if acting == [] else WARNING,
                call,
                what="the model is called without training=True: dropout and normalisation act as in use",
                evidence=_layers_shown(acting),
                fix=patch(reading.script, [argument_added(reading.script, call, "training=True")]),
            )


def _layers_shown(acting: list[str] | None) -> str:
    if acting is None:
        return "the script does not show the model's layers"
    if not acting:
        return "none of the layers shown acts differently in training, so nothing changes yet"
    return f"the model has {', '.join(acting)}"


RULES = (labels_forgotten, ranks_differ, not_reduced, training_forgotten)
