"""Training, with a model: what its shape says about the data, and what cannot be split."""

from collections.abc import Iterator
from math import prod

from anybatch.doctor.checks.labels import trained_on
from anybatch.doctor.findings import Finding, Severity
from anybatch.doctor.measure import Asked, Facts
from anybatch.units import size

MIX_RECORDS = ("BatchNormalization", "SpectralNormalization")
"""Layers in which a record's result depends on who else is in the batch."""

_WITHIN = (0.05, 20.0)
"""Batches from a twentieth to twenty times the noise scale are nothing to speak of."""


def input_mismatch(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB501: nothing that the model is given has as many values as it takes."""
    if facts.model is None or len(facts.model.inputs) != 1:
        return
    shape = facts.model.inputs[0]
    if any(dim is None for dim in shape):
        return
    wanted = prod(dim or 0 for dim in shape)
    held = _yielded(facts) if asked.streamed else _stored(facts)
    if not held or any(_can_be(usual, wanted) for usual in held.values()) or sum(held.values()) == wanted:
        return
    yield Finding(
        "AB501",
        Severity.ERROR,
        "no feature has as many values as the model takes: the first step would fail",
        f"the model takes {shape}, {wanted:,} values; "
        + ", ".join(f"`{name}` has {n:,}" for name, n in held.items()),
        f"keras.Input(shape=({max(held.values())},))  # or map the records to {shape}",
    )


def _yielded(facts: Facts) -> dict[str, int]:
    """Return how many values a stream gives the model, if it does not take them."""
    tried = facts.training
    if tried is None or not tried.problem:
        return {}
    named = ["x"] if len(tried.x_shapes) == 1 else [f"x[{at}]" for at in range(len(tried.x_shapes))]
    return dict(zip(named, map(prod, tried.x_shapes), strict=True))


def _stored(facts: Facts) -> dict[str, int]:
    """Return how many values or bytes features have; nothing where encoded ones may become anything."""
    inputs = {name: lengths for name, lengths in facts.sample.lengths.items() if name != facts.label}
    for name, lengths in inputs.items():
        if len(lengths.records) > 1 and any(seen.kind == "bytes" for _, seen in facts.seen(name)):
            return {}
    return {name: lengths.usual for name, lengths in inputs.items()}


def _can_be(usual: int, wanted: int) -> bool:
    """Whether so many values or bytes can be an array of the wanted size: raw numbers of 1 to 8 bytes.

    >>> _can_be(784, 784), _can_be(3136, 784), _can_be(100, 784)
    (True, True, False)
    """
    return usual in {wanted, 2 * wanted, 4 * wanted, 8 * wanted}


def cannot_be_split(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB502: an update in parts is not that of the whole batch, or there can be no parts."""
    tried = facts.training
    if tried is not None and tried.unsplit:
        yield Finding(
            "AB502",
            Severity.NOTE,
            "the model cannot be split: batches run whole, and have to fit as they are",
            tried.unsplit,
            "ab.fit(model, data)  # whole batches, as they are; parts too, once that is changed",
        )
        return
    reasons = _shown_by_layers(facts) if tried is None or tried.problem else tried.inexact
    if not reasons:
        return
    yield Finding(
        "AB502",
        Severity.NOTE,
        "the model can be split, and a batch in parts is not exactly the whole one",
        "; ".join(reasons),
        "# for exactness: LayerNormalization or GroupNormalization, which look at one record at a time",
    )


def _shown_by_layers(facts: Facts) -> tuple[str, ...]:
    """Return what makes parts inexact in a model that could not be tried."""
    known = facts.model.kinds if facts.model is not None else frozenset()
    told = "mixes the records of a batch; its statistics are taken per part and put together once per update"
    return tuple(f"{kind} {told}" for kind in MIX_RECORDS if kind in known)


def output_mismatch(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB503: the model has not as many outputs as there are classes."""
    label, model = facts.sample.label, facts.model
    if label is None or model is None or label.continuous or "sparse" not in model.loss:
        return
    # what a function has made of the labels is judged by what it gives
    classes = trained_on(facts) if asked.changed else label.classes
    if model.units is None or model.units >= len(classes):
        return
    yield Finding(
        "AB503",
        Severity.ERROR,
        "the model has fewer outputs than the label has classes",
        f"{model.units:,} outputs and {len(classes):,} classes of `{label.name}`",
        f"keras.layers.Dense({len(classes)})",
    )


def noisy(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB504: what the gradient noise says about the batch."""
    scale = facts.training.noise_scale if facts.training else None
    if scale is None or asked.batch_size is None or _WITHIN[0] < asked.batch_size / scale < _WITHIN[1]:
        return
    small = asked.batch_size < scale
    yield Finding(
        "AB504",
        Severity.NOTE,
        "the batch is small for how noisy the gradients are: updates are mostly noise"
        if small
        else "the batch is large for how noisy the gradients are: most of its records tell nothing new",
        f"a batch of {asked.batch_size:,}; noise and signal are equal at {scale:,.0f}, with these weights",
        f"anybatch sweep FILE:FUNCTION --batch-sizes {asked.batch_size},{max(1, round(scale))}",
    )


def first_step_fails(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB505: the model does not take what the stream gives."""
    if facts.training is None or not facts.training.problem:
        return
    yield Finding(
        "AB505",
        Severity.ERROR,
        "the first batch does not pass through the model",
        facts.training.problem,
        'data = data.as_supervised("x", "y")  # columns of the shape and type that the model was built for',
    )


def input_too_slow(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB506: batches take longer to come than a whole step would."""
    tried = facts.training
    if tried is None or not tried.forward_seconds:
        return
    # a step is about three times its forward half
    step = 3 * tried.forward_seconds
    if tried.input_seconds <= step:
        return
    yield Finding(
        "AB506",
        Severity.WARNING,
        "the input cannot keep up with the model: most of the time the model would wait",
        f"a batch takes {tried.input_seconds * 1e3:,.0f} ms to come, about {step * 1e3:,.0f} ms to train on; "
        f"`{tried.slowest_stage}` is waited for most",
        "data = data.map(fn, batched=True)  # columns of many records at a time; or .cache() behind it",
    )


def map_mixes_records(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB507: what a map makes of a record depends on who else is in the batch."""
    if facts.training is None or not facts.training.mixing_map:
        return
    promised = facts.training.mixing_map_promised
    yield Finding(
        "AB507",
        Severity.WARNING if promised else Severity.NOTE,
        "a map gives a record another value when other records are with it",
        f"`{facts.training.mixing_map}` makes something else of two halves of a batch than of the whole"
        + (", and `batched=True` promises that it looks at each record on its own" * promised),
        "data = data.batch(512).map(fn)  # behind batch it sees the whole batch, always the same one"
        if promised
        else "data = data.map(fn, batched=True)  # with fn looking at each record on its own; then parts do",
    )


def memory_grows(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB508: more is held after every step."""
    tried = facts.training
    if tried is None or not tried.grown_bytes_per_step:
        return
    rate = size(round(tried.grown_bytes_per_step))
    lasts = ""
    if asked.memory_bytes:
        lasts = f"; {size(asked.memory_bytes)} are full after "
        lasts += f"{round(asked.memory_bytes / tried.grown_bytes_per_step):,} steps at the latest"
    yield Finding(
        "AB508",
        Severity.WARNING,
        "memory grows with every step, although the batches are the same: something keeps what has passed",
        f"{rate} more per step, over the last {tried.watched_steps:,} of the steps that were watched{lasts}",
        "losses.append(float(loss))  # a number; a list of tensors or batches holds all that made them",
    )


CHECKS = (
    input_mismatch,
    cannot_be_split,
    output_mismatch,
    noisy,
    first_step_fails,
    input_too_slow,
    map_mixes_records,
    memory_grows,
)
