"""Batch: does it fit, does the data fill it, and what about the last one."""

from collections.abc import Iterator

from anybatch.doctor.findings import Finding, Severity
from anybatch.doctor.measure import Asked, Facts
from anybatch.units import size

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

_SKEWED = 32
_SOMEWHAT_SKEWED = 8


def does_not_fit(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB401: not even the batch itself fits."""
    if asked.batch_size is None or asked.memory_bytes is None:
        return
    needed = int(asked.batch_size * facts.mean_bytes)
    if needed <= asked.memory_bytes:
        return
    fitting = max(1, int(asked.memory_bytes / 4 / max(1.0, facts.mean_bytes)))
    yield Finding(
        "AB401",
        ERROR,
        f"a batch of {asked.batch_size:,} does not fit into memory, before any model is there",
        f"it needs {size(needed, up=True)} of {size(asked.memory_bytes)}: "
        f"{size(int(facts.mean_bytes))} per record on average",
        f'ab.fit(model, data, memory="{asked.memory_bytes}")  # batches of {asked.batch_size:,} in parts of '
        f"up to {fitting:,}, with the same update",
    )


def does_not_fit_whole(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB408: with the model the batch has to be split, or cannot be trained at all."""
    tried = facts.training
    if tried is None or (tried.plan is None and not tried.no_plan):
        return
    if tried.plan is None:
        told, what = tried.no_plan, "not even one record trains in the memory there is"
        limit = size(asked.memory_bytes or 0)
        fix = f"ab.fit(model, data)  # without a limit, or with one above {limit}; or make the model smaller"
    elif (tried.plan.parts or 1) > 1:
        told = "; ".join(" ".join(line.split()) for line in str(tried.plan).splitlines())
        what = "the batch does not fit into memory whole; in parts it does"
        fix = f"ab.fit(model, data, memory={asked.memory_bytes})  # the update of the whole batch, in parts"
    else:
        return
    yield Finding(
        "AB408",
        ERROR if tried.plan is None else WARNING,
        what,
        told,
        fix,
    )


def larger_than_data(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB402: fewer records than one batch."""
    if asked.batch_size is None or not facts.records or asked.batch_size <= facts.records:
        return
    yield Finding(
        "AB402",
        WARNING,
        "the batch is larger than the data: every epoch is one short update, or none with drop_remainder",
        f"a batch of {asked.batch_size:,} and {facts.records:,} records",
        f".batch({batch_instead(facts)})  # ten updates per epoch",
    )


def batch_instead(facts: Facts) -> int:
    """Return which batch is advised where the wanted one is larger than the data."""
    return max(1, facts.records // 10)


def last_of_one(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB403: a batch whose variance is zero."""
    if asked.batch_size is None or asked.batch_size < 2 or facts.records % asked.batch_size != 1:
        return
    if asked.drop_remainder:
        return
    normalised = facts.model is not None and "BatchNormalization" in facts.model.layers
    yield Finding(
        "AB403",
        WARNING if normalised else NOTE,
        "the last batch of an epoch has one record, which BatchNormalization makes all zeros",
        f"{facts.records:,} records in batches of {asked.batch_size:,} leave 1 over",
        f".batch({asked.batch_size}, drop_remainder=True)",
    )


def skewed_sizes(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB404: a few records are far larger than the others."""
    mean, largest = facts.mean_bytes, facts.sizes.largest_bytes
    if not mean or largest < _SOMEWHAT_SKEWED * mean:
        return
    batch = asked.batch_size or 32
    yield Finding(
        "AB404",
        WARNING if largest >= _SKEWED * mean else NOTE,
        "a few records are far larger than the others: memory has to hold the worst batch",
        f"the largest has {size(largest)}, the mean is {size(int(mean))}; "
        f"{batch:,} of the largest are {size(batch * largest)}",
        '# cut them to a length, or limit the stream: data.limit_memory("512MiB")',
    )


def cache_too_large(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB405: cache() in memory would not fit."""
    held = facts.sizes.total_bytes
    if asked.memory_bytes is None or held <= asked.memory_bytes:
        return
    yield Finding(
        "AB405",
        NOTE,
        "the data does not fit into memory: cache() needs a file",
        f"{size(held)} of records, {size(asked.memory_bytes)} of memory",
        '.cache("cache/train")',
    )


def buffer_too_large(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB406: the shuffle buffer would not fit."""
    if asked.memory_bytes is None or asked.shuffle_buffer is None:
        return
    held = int(min(asked.shuffle_buffer, facts.records) * facts.mean_bytes)
    if held <= asked.memory_bytes:
        return
    yield Finding(
        "AB406",
        ERROR,
        "the shuffle buffer does not fit into memory",
        f"{asked.shuffle_buffer:,} records are {size(held, up=True)} of {size(asked.memory_bytes)}",
        f"data = {shuffled_read(facts)}  # in constant memory, without a buffer",
    )


def shuffled_read(facts: Facts) -> str:
    """Return what reads these records shuffled: compressed shards have no places to jump to."""
    window = ', window="256MiB"' if facts.compressed else ""
    return f"ab.read(paths).shuffle(seed=7{window})"


def steps_mismatch(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB407: steps_per_epoch is not what the data gives."""
    if asked.steps_per_epoch is None or asked.batch_size is None or not facts.records:
        return
    steps = -(-facts.records // asked.batch_size)
    if asked.steps_per_epoch in {steps, facts.records // asked.batch_size}:
        return
    more = asked.steps_per_epoch > steps
    yield Finding(
        "AB407",
        WARNING,
        "steps_per_epoch asks for more than an epoch has: training stops with a warning"
        if more
        else "steps_per_epoch is less than an epoch: without repeat the rest is never trained on",
        f"{asked.steps_per_epoch:,} steps of {asked.batch_size:,}; {facts.records:,} records make {steps:,}",
        f"steps_per_epoch={steps}",
    )


CHECKS = (
    does_not_fit,
    does_not_fit_whole,
    larger_than_data,
    last_of_one,
    skewed_sizes,
    cache_too_large,
    buffer_too_large,
    steps_mismatch,
)
