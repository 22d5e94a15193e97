"""Calls of fit: what they are compared with, and what they take for granted."""

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise

from anybatch.doctor.findings import Finding
from anybatch.doctor.lint.edits import Patch, argument_added, patch
from anybatch.doctor.lint.found import NOTE, WARNING, found
from anybatch.doctor.lint.gradients import calls_in, loops_around, names_in
from anybatch.doctor.lint.uses import Fit, Reading
from anybatch.doctor.lint.values import Known, Pipeline

_STARTS_ANEW = {"set_weights", "load_weights", "clone_model", "clear_session"}
_NO_BATCH_SIZE = re.compile(r"\b(no|without)\b.{0,20}batch.?size.*\b(full|whole|entire|all)\b", re.IGNORECASE)
_FULL_BATCH = re.compile(
    r"\bfull.?batch\b|\b(whole|entire) (data ?set|data) (at once|as (one|a)|in one)", re.IGNORECASE
)
_ANEW = "model = build_model()  # fresh weights in front of every fit that is compared\n"


def trained_on(reading: Reading) -> Iterator[Finding]:
    """AB805: the second fit starts from what the first one learnt."""
    for fit, later in pairwise(reading.fits):
        same = fit.model == later.model and reading.script.scope(fit.call) is reading.script.scope(later.call)
        if not same or not _batches_differ(fit, later) or _in_handler(reading, later):
            continue
        if _data_of(fit) != _data_of(later):
            continue
        if _starts_anew(reading, fit, later):
            continue
        yield found(
            "AB805",
            WARNING,
            later.call,
            what=f"`{later.model}` was trained by the fit before: the two batch sizes cannot be compared",
            evidence=f"batch {_shown(fit)} at line {fit.call.lineno}, then batch {_shown(later)}",
            fix=_ANEW
            + ast.unparse(reading.script.statement(later.call)).split("\n")[0]
            + f"\n# or: ab.sweep(build_model, data, [{_plain(fit)}, {_plain(later)}], samples=50_000)",
        )
    yield from _trained_on_in_loops(reading)


def _batches_differ(fit: Fit, later: Fit) -> bool:
    return isinstance(fit.batch, Known) and isinstance(later.batch, Known) and fit.batch != later.batch


def _data_of(fit: Fit) -> str:
    """Return what a fit trains on, as written."""
    if isinstance(fit.x, Pipeline):
        return ast.unparse(fit.x.source.call)
    return ast.unparse(fit.call.args[0]) if fit.call.args else ""


def _shown(fit: Fit) -> str:
    return (
        f"{fit.batch.value:,}" if isinstance(fit.batch, Known) and isinstance(fit.batch.value, int) else "?"
    )


def _plain(fit: Fit) -> str:
    return _shown(fit).replace(",", "_")


def _in_handler(reading: Reading, fit: Fit) -> bool:
    return any(isinstance(one, ast.ExceptHandler) for one in reading.script.above(fit.call))


def _starts_anew(reading: Reading, fit: Fit, later: Fit) -> bool:
    """Whether the model is made or filled anew between two fits, or the second goes on on purpose."""
    if any(one.arg == "initial_epoch" for one in later.call.keywords):
        return True
    statements = reading.script.once(_statements, reading.script.scope(later.call))
    first = bisect_left(statements, fit.call.lineno, key=_line)
    behind = bisect_right(statements, later.call.lineno, key=_line)
    return any(_renews(node, later.model) for node in statements[first:behind])


def _statements(scope: ast.AST) -> list[ast.stmt]:
    return sorted((one for one in ast.walk(scope) if isinstance(one, ast.stmt)), key=_line)


def _line(node: ast.stmt) -> int:
    return node.lineno


def _renews(node: ast.stmt, model: str) -> bool:
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.For):
        targets = [ast.unparse(target) for target in _targets(node)]
        return model in targets or any(target.endswith(".trainable") for target in targets)
    called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in _STARTS_ANEW


def _targets(node: ast.Assign | ast.AnnAssign | ast.For) -> list[ast.expr]:
    """Return everything that a statement gives a value, the parts of tuples one by one."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [
        part for one in targets for part in (one.elts if isinstance(one, ast.Tuple | ast.List) else [one])
    ]


def _trained_on_in_loops(reading: Reading) -> Iterator[Finding]:
    for fit in reading.fits:
        loops = loops_around(reading.script, fit.call)
        batch = _batch_expression(fit)
        varied = [loop for loop in loops if batch is not None and names_in(loop.target) & names_in(batch)]
        if not varied or any(
            _renews(node, fit.model) for node in ast.walk(varied[0]) if isinstance(node, ast.stmt)
        ):
            continue
        yield found(
            "AB805",
            WARNING,
            fit.call,
            what=f"`{fit.model}` is trained on while the batch size changes: the sizes cannot be compared",
            evidence=f"the loop over `{ast.unparse(varied[0].iter)}` never makes `{fit.model}` anew",
            fix=_ANEW + ast.unparse(fit.call),
        )


def _batch_expression(fit: Fit) -> ast.expr | None:
    given = {one.arg: one.value for one in fit.call.keywords}
    if "batch_size" in given:
        return given["batch_size"]
    step = fit.x.first("batch", "padded_batch") if isinstance(fit.x, Pipeline) else None
    return step.call.args[0] if step and step.call.args else None


def taken_for_full(reading: Reading) -> Iterator[Finding]:
    """AB806: without batch_size Keras takes 32."""
    comments = reading.script.comments
    for fit in reading.fits:
        given = {one.arg for one in fit.call.keywords}
        if isinstance(fit.x, Pipeline) or given & {"batch_size", "steps_per_epoch", None}:
            continue
        near = range(fit.call.lineno - 2, (fit.call.end_lineno or fit.call.lineno) + 1)
        told = any(_FULL_BATCH.search(comments.get(line, "")) for line in near)
        if (told or "full" in fit.kept_as.lower()) and fit.call.args:
            whole = argument_added(
                reading.script, fit.call, f"batch_size=len({ast.unparse(fit.call.args[0])})"
            )
            yield _not_full(reading, fit.call.lineno, patch(reading.script, [whole]))
    for line, text in comments.items():
        if _NO_BATCH_SIZE.search(text):
            yield _not_full(reading, line, "model.fit(x, y, batch_size=len(x))  # one update per epoch")


def _not_full(reading: Reading, line: int, fix: str | Patch) -> Finding:
    return found(
        "AB806",
        WARNING,
        line,
        what="fit without batch_size is no full batch: Keras uses batches of 32",
        evidence=f"`{reading.script.lines[line - 1].strip()[:80]}`",
        fix=fix,
    )


def ignored_batch_size(reading: Reading) -> Iterator[Finding]:
    """AB807: a data set has its batches already."""
    for fit in reading.fits:
        given = {one.arg for one in fit.call.keywords}
        ours = reading.script.dotted(fit.call.func) == "anybatch.fit"
        if ours or not isinstance(fit.x, Pipeline) or "batch_size" not in given:
            continue
        yield found(
            "AB807",
            WARNING,
            fit.call,
            what="fit ignores batch_size for a data set; what counts is its own batch()",
            evidence=_batches_of(fit.x, fit),
            fix="dataset = dataset.batch(batch_size)\nmodel.fit(dataset)",
        )


def _batches_of(chain: Pipeline, fit: Fit) -> str:
    step = chain.first("batch", "padded_batch")
    own = f"has batches of {_shown(fit)}" if step else "has no batch()"
    return f"batch_size is given, and the data set {own}"


def accumulation_of_keras(reading: Reading) -> Iterator[Finding]:
    """AB808: what gradient_accumulation_steps does otherwise than a whole batch."""
    for call in calls_in(reading.script.tree):
        if not any(one.arg == "gradient_accumulation_steps" for one in call.keywords):
            continue
        yield found(
            "AB808",
            NOTE,
            call,
            what="Keras' gradient accumulation is not the update of the whole batch at the edges",
            evidence="it averages parts of unequal size alike, carries leftovers into the next epoch, and "
            "schedules and weight averages count parts",
            fix='ab.fit(model, data, batch_size=512, memory="2GiB")',
        )


RULES = (trained_on, taken_for_full, ignored_batch_size, accumulation_of_keras)
