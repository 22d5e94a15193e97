"""Batch: does it fit, does the data fill it, and what about the last one."""

from collections.abc import Iterator

from anybatch.doctor.findings import Finding, Severity
from anybatch.doctor.measure import Asked, Facts
from anybatch.doctor.mixing import smallest_buffer
from anybatch.units import size

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

_LEAST_WINDOW_BYTES = 1 << 20
MOST_WINDOW_BYTES = 1 << 30
"""More than that is not shuffled while reading: writing the records anew in another order costs less."""

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
    normalised = facts.model is not None and "BatchNormalization" in facts.model.kinds
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
        '.cache("train.cache")',
    )


def buffer_too_large(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB406: the shuffle buffer would not fit."""
    if asked.memory_bytes is None or asked.shuffle_buffer is None:
        return
    held = int(min(asked.shuffle_buffer, facts.records) * facts.mean_bytes)
    if held <= asked.memory_bytes:
        return
    label = facts.sample.label
    needed = None if label is None else smallest_buffer(label, asked.batch_size or 32, facts.records)
    reading = shuffled_read(facts, needed, min(MOST_WINDOW_BYTES, asked.memory_bytes // 2))
    yield Finding(
        "AB406",
        ERROR,
        "the shuffle buffer does not fit into memory",
        f"{asked.shuffle_buffer:,} records are {size(held, up=True)} of {size(asked.memory_bytes)}",
        f"data = {reading}  # in constant memory, without a buffer" if reading else reshuffled(facts),
    )


def prefetch_too_large(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB409: the batches made ahead would not fit."""
    if asked.memory_bytes is None or asked.prefetch is None or asked.batch_size is None:
        return
    each = max(1, int(asked.batch_size * facts.mean_bytes))
    held = min(asked.prefetch * each, facts.sizes.total_bytes)
    # of a batch that does not even fit alone that is told
    if not each <= asked.memory_bytes < held:
        return
    # the batch that is trained on, and what the model needs, have to be there too
    fitting = max(1, asked.memory_bytes // 4 // each)
    yield Finding(
        "AB409",
        ERROR,
        "the batches that are prefetched do not fit into memory",
        f"{asked.prefetch:,} batches of {asked.batch_size:,} are {size(held, up=True)} of "
        f"{size(asked.memory_bytes)}, before anything is decoded",
        f"data = data.prefetch({fitting})  # or .prefetch(): as many as serve, within the limit",
    )


def shuffled_read(facts: Facts, needed: int | None = None, most_bytes: int = MOST_WINDOW_BYTES) -> str:
    """Return what reads these records shuffled; nothing where a window would have to be larger than that.

    Compressed shards have no places to jump to: there it takes a window that does what a buffer of `needed`
    records does, and of all records where nobody knows what is needed.
    """
    if not facts.compressed:
        return "ab.read(paths).shuffle(seed=7)"
    # one window is emptied before the next is filled: on average it mixes half as far as a buffer
    records = facts.records if needed is None else min(2 * needed, facts.records)
    window = plain_window(int(records * facts.mean_bytes) + 1)
    return f'ab.read(paths).shuffle(seed=7, window="{window >> 20}MiB")' if window <= most_bytes else ""


def plain_window(n_bytes: int) -> int:
    """Return a size that is easily read and not below what is needed: a power of two, a MiB at least.

    >>> plain_window(3), plain_window(3 << 20) >> 20, plain_window(64 << 20) >> 20
    (1048576, 4, 64)
    """
    return max(_LEAST_WINDOW_BYTES, 1 << (n_bytes - 1).bit_length())


def reshuffled(facts: Facts) -> str:
    """Return the command that writes these records anew in random order."""
    return f"anybatch reshard {facts.paths} --to shuffled --shards {max(1, len(facts.good))} --shuffle"


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
    prefetch_too_large,
    steps_mismatch,
)
