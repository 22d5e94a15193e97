"""What is kept in memory: caches, constants, lists."""

import ast
from collections.abc import Iterator

from anybatch.doctor.findings import Finding
from anybatch.doctor.lint.chains import function_of, names_called, opens_files, reads_files
from anybatch.doctor.lint.edits import Edit, argument_added, before_step, end_of, moved, patch, replaced
from anybatch.doctor.lint.found import NOTE, WARNING, found
from anybatch.doctor.lint.script import Script
from anybatch.doctor.lint.uses import Reading
from anybatch.doctor.lint.values import Array, Known, Pipeline, Step
from anybatch.units import size

_LARGE_BYTES = 256 << 20
_RANDOM = (
    "tensorflow.image.random_",
    "tensorflow.image.stateless_random_",
    "tensorflow.random.",
    "numpy.random.",
)


def frozen_augmentation(reading: Reading) -> Iterator[Finding]:
    """AB611: a cache behind a random map."""
    for use in reading.uses:
        cache = use.chain.first("cache")
        for step in use.chain.steps[: use.chain.position("cache")]:
            if cache is None or step.name not in {"map", "random_map"} or not _is_random(reading, step):
                continue
            yield found(
                "AB611",
                WARNING,
                cache,
                what="what a random function made is cached: every epoch sees the same random choices",
                evidence=f"the map at line {step.line} draws at random, and cache comes behind it",
                fix=patch(reading.script, moved(reading.script, cache, before_step(reading.script, step))),
            )


def _is_random(reading: Reading, step: Step) -> bool:
    function = function_of(step)
    if function is None:
        return step.name == "random_map"
    return any(_draws(reading, name) for name in names_called(reading.script, function))


def _draws(reading: Reading, name: str) -> bool:
    model = reading.models.get(name)
    if model is not None and model.layers:
        return any(layer.startswith("Random") for layer in model.layers)
    return name.startswith(_RANDOM)


def frozen_order(reading: Reading) -> Iterator[Finding]:
    """AB613: a cache behind the shuffle."""
    for use in reading.uses:
        cache, shuffle = use.chain.first("cache"), use.chain.first("shuffle")
        if cache is None or shuffle is None or use.chain.source.kind == "anybatch":
            continue
        at = use.chain.position("cache")
        if use.chain.position("shuffle") > at or any(step.name == "shuffle" for step in use.chain.steps[at:]):
            continue
        yield found(
            "AB613",
            WARNING,
            cache,
            what="cache comes after shuffle: the first epoch's order is kept for all epochs",
            evidence=f"shuffle at line {shuffle.line}, cache at line {cache.line}",
            fix=patch(reading.script, moved(reading.script, shuffle, end_of(cache.call))),
        )


def cache_in_memory(reading: Reading) -> Iterator[Finding]:
    """AB612: everything that was read stays in memory."""
    for use in reading.uses:
        cache = use.chain.first("cache")
        if cache is None or cache.given.get("filename", Known("")) != Known(""):
            continue
        held = _bytes_of(use.chain)
        if use.chain.source.kind == "anybatch" or (held is not None and held < _LARGE_BYTES):
            continue
        shown = "the script does not show how large it is" if held is None else f"it has {size(held)}"
        yield found(
            "AB612",
            NOTE if held is None else WARNING,
            cache,
            what="cache() keeps the whole data set in memory, as decoded tensors",
            evidence=f"cache without a file name over `{ast.unparse(use.chain.source.call)}`; {shown}",
            fix=patch(reading.script, [_file_named(reading.script, cache.call)]),
        )


def _file_named(script: Script, cache: ast.Call) -> Edit:
    given = [*cache.args, *(one.value for one in cache.keywords)]
    name = '"train.cache"'
    return replaced(given[0], name) if given else argument_added(script, cache, name)


def _bytes_of(chain: Pipeline) -> int | None:
    sizes = [one.n_bytes if isinstance(one, Array) else None for one in chain.source.arrays]
    known = [one for one in sizes if one is not None]
    return sum(known) if known and len(known) == len(sizes) else None


def constants(reading: Reading) -> Iterator[Finding]:
    """AB625: arrays copied into tensors, whole."""
    for use in reading.uses:
        source = use.chain.source
        if source.kind != "arrays" or _is_small(source.call):
            continue
        if any(opens_files(reading.script, step) for step in use.chain.steps):
            continue
        held = _bytes_of(use.chain)
        if held is not None and held < _LARGE_BYTES:
            continue
        shown = "the script does not show how large they are" if held is None else f"{size(held)} of arrays"
        yield found(
            "AB625",
            NOTE if held is None else WARNING,
            source.call,
            what="from_tensor_slices copies whole arrays into constants: they lie in memory twice",
            evidence=shown,
            fix="data = ab.from_arrays((x_train, y_train)).shuffle(seed=7).batch(batch_size)"
            "  # slices the arrays where they are",
        )


def _is_small(call: ast.Call) -> bool:
    first = call.args[0] if call.args else None
    return isinstance(first, ast.List | ast.ListComp) or (
        isinstance(first, ast.Call) and isinstance(first.func, ast.Name) and first.func.id == "range"
    )


def made_a_list(reading: Reading) -> Iterator[Finding]:
    """AB627: list(dataset)."""
    for use in reading.uses:
        called = use.call.func if use.call else None
        if not isinstance(called, ast.Name) or called.id != "list" or use.chain.first("take"):
            continue
        if not reads_files(reading.script, use.chain):
            continue
        yield found(
            "AB627",
            WARNING,
            called,
            what="list() takes every element of a data set that streams from files into memory",
            evidence=f"`{ast.unparse(use.call)[:80]}`" if use.call else "",
            fix="for batch in dataset:  # one batch at a time\n    ...",
        )


RULES = (frozen_augmentation, frozen_order, cache_in_memory, constants, made_a_list)
