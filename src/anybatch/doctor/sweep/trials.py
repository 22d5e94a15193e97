"""Train from the same fresh weights at each batch size, and measure."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from anybatch.doctor.kept import kept, put_back, values_of
from anybatch.doctor.noise import measured_noise
from anybatch.doctor.sweep.found import Trial
from anybatch.memory import PeakWatch, give_back_freed
from anybatch.stream import Stream, from_arrays
from anybatch.stream.batch import Batch
from anybatch.stream.filter import Filter
from anybatch.stream.repeat import Repeat
from anybatch.stream.slices import Slice
from anybatch.stream.stage import Operation, Stage

_PROBE = 2048
_TIMED_STEPS = 8


def trials(
    build_model: Callable[[], Any],
    data: Any,
    batch_sizes: Sequence[int],
    *,
    samples: int,
    validation: Any,
    progress: Callable[[Trial], None] | None = None,
) -> list[Trial]:
    """Return a trial per batch size, each from the weights and the seeds of the first model."""
    stream, start, found = as_stream(data, "data"), None, []
    held_out = None if validation is None else as_stream(validation, "validation")
    for size in batch_sizes:
        model = build_model()
        _build(model, stream)
        start = values_of(model) if start is None else start
        put_back(model, start)
        found.append(_tried(model, stream, size, samples=samples, validation=held_out))
        if progress:
            progress(found[-1])
        del model
        give_back_freed()
    return found


def as_stream(data: Any, name: str) -> Stream:
    """Return the data as a stream of `(x, y)`; what is none is refused by name."""
    if not isinstance(data, Stream | tuple | list):
        raise ValueError(
            f"{name} is of type {type(data).__name__}; give a stream of (x, y), or the arrays (x, y)"
        )
    stream = data if isinstance(data, Stream) else from_arrays(tuple(data))
    first = next(iter(stream if _own_batch(stream._stage) else stream.take(1).batch(1)), None)  # noqa: SLF001
    if first is None:
        raise ValueError(f"{name} has 0 records; at least 1 is needed")
    if not isinstance(first, tuple) or len(first) < 2:
        told = f"a tuple of {len(first)}" if isinstance(first, tuple) else f"a {type(first).__name__}"
        raise ValueError(f"an element of {name} is {told}; (x, y) is needed, see .as_supervised(x, y)")
    return stream


def _build(model: Any, stream: Stream) -> None:
    """Give the model its weights by showing it a few records."""
    from anybatch.train import evaluate

    evaluate(model, batched(stream, 2, 2), verbose=0)


def _tried(model: Any, stream: Stream, size: int, *, samples: int, validation: Stream | None) -> Trial:
    from anybatch.train import evaluate, fit

    probe = batched(stream, min(samples, _PROBE), 256)
    trained_on = repeated(stream, samples, size)
    with PeakWatch() as watch:
        fit(model, trained_on, verbose=0)
    loss = _loss(evaluate(model, probe, verbose=0))
    held_out = None if validation is None else _loss(evaluate(model, _held_out(validation), verbose=0))
    # before the speed is measured, which trains on
    noise_scale = _noise_scale(model, stream)
    return Trial(
        size,
        len(trained_on),
        _speed(model, stream, min(samples, _TIMED_STEPS * size), size),
        watch.peak_bytes - watch.before_bytes,
        loss,
        held_out,
        noise_scale,
    )


def _noise_scale(model: Any, stream: Stream) -> float | None:
    """Return the noise scale on the first records; the model is then as before, statistics and seeds too."""
    batch = next(iter(batched(stream, 256, 256)))
    with kept(model):
        noise = measured_noise(model, batch)
    return None if noise is None else noise.scale


def _speed(model: Any, stream: Stream, samples: int, size: int) -> float:
    """Return samples per second of a second fit, when the step is traced."""
    from anybatch.train import fit

    data = repeated(stream, samples, size)
    start = time.perf_counter()
    fit(model, data, verbose=0)
    return samples / (time.perf_counter() - start)


def _loss(found: Any) -> float:
    return float(found[0] if isinstance(found, list | tuple) else found)


def _held_out(stream: Stream) -> Stream:
    return stream if _own_batch(stream._stage) else stream.batch(256)  # noqa: SLF001 - what it is made of


def batched(stream: Stream, samples: int, size: int) -> Stream:
    """Return the first so many samples of one epoch, or all of them, in batches of another size."""
    return _in_batches(stream, size, lambda records: records.take(samples))


def repeated(stream: Stream, samples: int, size: int) -> Stream:
    """Return exactly so many samples in batches of another size, of as many epochs as that takes."""
    return _in_batches(stream, size, lambda records: _exactly(records, samples))


def _exactly(records: Stream, samples: int) -> Stream:
    try:
        one_epoch_is_enough = len(records) >= samples
    except TypeError:
        one_epoch_is_enough = False
    return (records if one_epoch_is_enough else records.repeat()).take(samples)


def _in_batches(stream: Stream, size: int, chosen: Callable[[Stream], Stream]) -> Stream:
    """Return the chosen ones of a stream's records in such batches, whatever batch it has of its own."""
    stage = stream._stage  # noqa: SLF001 - a stream is its stages
    return Stream(_rebatched(stage, size, chosen)) if _own_batch(stage) else chosen(stream).batch(size)


def _own_batch(stage: Stage) -> bool:
    while isinstance(stage, Operation):
        if isinstance(stage, Batch):
            return True
        stage = stage.parent
    return False


def _rebatched(stage: Stage, size: int, chosen: Callable[[Stream], Stream]) -> Stage:
    match stage:
        case Batch():
            return chosen(Stream(stage.parent)).batch(size)._stage  # noqa: SLF001 - what it is made of
        case Repeat():
            # epochs are counted below the batch: none of them ends in a short one
            return _rebatched(stage.parent, size, chosen)
        case Slice() | Filter():
            what = f"`{stage.described()}` behind batch chooses among batches, and a sweep changes their size"
            raise ValueError(f"{what}; put it before batch")
        case Operation():
            return replace(stage, parent=_rebatched(stage.parent, size, chosen))
    return stage
