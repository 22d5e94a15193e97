"""Training, with a model: what its shape says about the data, and what cannot be split."""

from collections.abc import Iterator
from math import prod

from anybatch.doctor.findings import Finding, Severity
from anybatch.doctor.measure import Asked, Facts

MIX_RECORDS = ("BatchNormalization", "SpectralNormalization")
"""Layers in which a record's result depends on who else is in the batch."""

_WITHIN = (0.05, 20.0)
"""Batches from a twentieth to twenty times the noise scale are nothing to speak of."""


def input_mismatch(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB501: no feature has as many values as the model takes."""
    if facts.model is None or len(facts.model.inputs) != 1 or not facts.sample.lengths:
        return
    shape = facts.model.inputs[0]
    if any(dim is None for dim in shape):
        return
    wanted = prod(dim or 0 for dim in shape)
    held = {name: lengths.usual for name, lengths in facts.sample.lengths.items() if name != facts.label}
    if any(_can_be(usual, wanted) for usual in held.values()) or sum(held.values()) == wanted:
        return
    yield Finding(
        "AB501",
        Severity.ERROR,
        "no feature has as many values as the model takes: the first step would fail",
        f"the model takes {shape}, {wanted:,} values; "
        + ", ".join(f"`{name}` has {n:,}" for name, n in held.items()),
        f"keras.Input(shape=({max(held.values(), default=0)},))  # or map the records to {shape}",
    )


def _can_be(usual: int, wanted: int) -> bool:
    """Whether so many values or bytes can be an array of the wanted size: raw numbers of 1 to 8 bytes.

    >>> _can_be(784, 784), _can_be(3136, 784), _can_be(100, 784)
    (True, True, False)
    """
    return usual in {wanted, 2 * wanted, 4 * wanted, 8 * wanted}


def cannot_be_split(facts: Facts, asked: Asked) -> Iterator[Finding]:
    """AB502: layers that mix records."""
    mixing = [layer for layer in MIX_RECORDS if facts.model and layer in facts.model.layers]
    if not mixing:
        return
    yield Finding(
        "AB502",
        Severity.NOTE,
        "the model has layers that mix the records of a batch: a batch in parts is not exactly the whole one",
        f"{', '.join(mixing)}; statistics are taken per part and put together once per update",
        "# for exactness: LayerNormalization or GroupNormalization, which look at one record at a time",
    )


def output_mismatch(facts: Facts, _: Asked) -> Iterator[Finding]:
    """AB503: the model has not as many outputs as there are classes."""
    label, model = facts.sample.label, facts.model
    if label is None or model is None or label.continuous or "sparse" not in model.loss:
        return
    if model.units is None or model.units >= len(label.classes):
        return
    yield Finding(
        "AB503",
        Severity.ERROR,
        "the model has fewer outputs than the label has classes",
        f"{model.units:,} outputs and {len(label.classes):,} classes of `{label.name}`",
        f"keras.layers.Dense({len(label.classes)})",
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


CHECKS = (input_mismatch, cannot_be_split, output_mismatch, noisy, first_step_fails, input_too_slow)
