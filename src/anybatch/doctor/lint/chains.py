"""Chains of tf.data and of anybatch: where they start and what follows."""

import ast
from collections.abc import Iterator, Mapping, Sequence

from anybatch.doctor.lint.script import Script, functions_in
from anybatch.doctor.lint.values import Pipeline, Source, Step, Value

_POSITIONAL: dict[str, tuple[str, ...]] = {
    "shuffle": ("buffer_size", "seed", "reshuffle_each_iteration"),
    "batch": ("batch_size", "drop_remainder", "num_parallel_calls"),
    "padded_batch": ("batch_size", "padded_shapes"),
    "map": ("map_func", "num_parallel_calls"),
    "random_map": ("map_func",),
    "interleave": ("map_func", "cycle_length", "block_length", "num_parallel_calls"),
    "flat_map": ("map_func",),
    "cache": ("filename",),
    "prefetch": ("buffer_size",),
    "repeat": ("count",),
    "take": ("count",),
    "skip": ("count",),
    "filter": ("predicate",),
    "shard": ("num_shards", "index"),
    "apply": ("transformation_func",),
    "as_supervised": ("x", "y"),
}
_GIVE_DATASETS = {
    *_POSITIONAL,
    "concatenate",
    "enumerate",
    "epoch",
    "assert_cardinality",
    "bucket_by_sequence_length",
    "group_by_window",
    "ragged_batch",
    "rejection_resample",
    "scan",
    "snapshot",
    "take_while",
    "unique",
    "ignore_errors",
    "limit_memory",
    "rebatch",
    "unbatch",
    "window",
    "with_options",
}
_OF_FILES = {"TFRecordDataset", "TextLineDataset", "FixedLengthRecordDataset", "CsvDataset"}
# beyond that nobody reads a chain
_MOST_STEPS = 200
_PASS_ON = {"enumerate", "iter", "tqdm", "experimental_distribute_dataset", "zip"}
LOOK_AT = {"cardinality", "get_single_element", "reduce", "save"}
"""Methods that take elements and give no data set."""


def source_of(script: Script, call: ast.Call, args: Sequence[Value]) -> Pipeline | None:
    """Return the chain that a call starts, or None if it starts none."""
    name = script.dotted(call.func)
    last = name.rsplit(".", 1)[-1]
    if name == "anybatch.read":
        return Pipeline(Source("anybatch", call))
    if not name.startswith("tensorflow.data."):
        return None
    if last in _OF_FILES:
        return Pipeline(Source("files", call))
    if last == "list_files":
        return Pipeline(Source("names", call))
    if last in {"from_tensor_slices", "from_tensors"}:
        return Pipeline(Source("arrays", call, _columns(args)))
    if last == "zip":
        return _zipped(call, args)
    return Pipeline(Source("other", call)) if last in {"from_generator", "range"} else None


def _columns(args: Sequence[Value]) -> tuple[Value, ...]:
    first = args[0] if args else None
    return first if isinstance(first, tuple) else (first,)


def _zipped(call: ast.Call, args: Sequence[Value]) -> Pipeline | None:
    parts = args[0] if args and isinstance(args[0], tuple) else tuple(args)
    chains = [part for part in parts if isinstance(part, Pipeline)]
    return Pipeline(chains[0].source, chains[0].steps) if chains else Pipeline(Source("other", call))


def passed_on(name: str, args: Sequence[Value]) -> Pipeline | None:
    """Return the chain that a call only wraps, as `enumerate` does."""
    first = args[0] if args else None
    return first if isinstance(first, Pipeline) and name.rsplit(".", 1)[-1] in _PASS_ON else None


def extended(
    chain: Pipeline, call: ast.Call, args: Sequence[Value], given: Mapping[str, Value]
) -> Pipeline | None:
    """Return a chain with one more step, or None if the method gives something else."""
    assert isinstance(call.func, ast.Attribute)  # noqa: S101 - a method is called
    name = call.func.attr
    if name not in _GIVE_DATASETS:
        return None
    if name == "apply" and not _is_of_tensorflow(call):
        return None
    bound = dict(zip(_POSITIONAL.get(name, ()), args, strict=False)) | dict(given)
    if name == "apply" and "ignore_errors" in ast.unparse(call):
        name = "ignore_errors"
    return Pipeline(chain.source, (*chain.steps, Step(name, call, bound)))


def _is_of_tensorflow(call: ast.Call) -> bool:
    """Whether what is applied is made by tf.data itself, as `tf.data.experimental.unbatch()` is."""
    return any(".data." in ast.unparse(one) for one in call.args) or "ignore_errors" in ast.unparse(call)


def joined(before: Value, one: Value, other: Value) -> Value:
    """Return what a name stands for behind an `if`: a chain with the steps of both branches."""
    if one is other:
        return one
    if not isinstance(one, Pipeline) or not isinstance(other, Pipeline):
        return one if other is before or other is None else other
    start = before.steps if isinstance(before, Pipeline) else ()
    if one.steps[: len(start)] != start or other.steps[: len(start)] != start:
        return one
    had = set(one.steps)
    added = [step for step in other.steps[len(start) :] if step not in had]
    return Pipeline(one.source, (*one.steps, *added[: max(0, _MOST_STEPS - len(had))]))


def function_of(step: Step) -> ast.AST | None:
    """Return the function or lambda that a step calls on each element, if the script has it."""
    function = step.given.get("map_func")
    if isinstance(function, ast.Lambda | ast.FunctionDef):
        return function
    return None


def opens_files(script: Script, step: Step) -> bool:
    """Whether a step makes a data set of files out of each element."""
    if step.name not in {"interleave", "flat_map"}:
        return False
    # a function of the script, or the class of the data set itself
    opens = function_of(step) or (step.call.args[0] if step.call.args else None)
    return opens is not None and any(
        script.dotted(node).rsplit(".", 1)[-1] in _OF_FILES
        for node in ast.walk(opens)
        if isinstance(node, ast.Attribute | ast.Name)
    )


def reads_files(script: Script, chain: Pipeline) -> bool:
    """Whether the records of a chain come out of files."""
    return chain.source.kind in {"files", "names", "anybatch"} or any(
        opens_files(script, step) for step in chain.steps
    )


def names_called(script: Script, function: ast.AST) -> Iterator[str]:
    """Yield the full name of everything that a function calls, itself or by functions of the script."""
    own = script.once(functions_in, script.tree)
    open_, seen = [function], {function}
    while open_:
        for node in ast.walk(open_.pop()):
            name = script.dotted(node.func) if isinstance(node, ast.Call) else ""
            if name:
                yield name
            if name in own and own[name] not in seen:
                seen.add(own[name])
                open_.append(own[name])
