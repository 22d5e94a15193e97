"""Train from the same fresh weights at each batch size, and measure."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anybatch.doctor.noise import measured_noise
from anybatch.memory import PeakWatch, give_back_freed
from anybatch.stream import Stream, from_arrays
from anybatch.stream.batch import Batch
from anybatch.stream.stage import Operation, Stage

_PROBE = 2048
_TIMED_STEPS = 8


@dataclass(frozen=True, slots=True)
class Trial:
    """What one batch size did."""

    batch_size: int
    updates: int
    samples_per_second: float
    peak_bytes: int
    """What training took above what the process held before."""
    loss: float
    """On the same records of the training data, after the same number of samples."""
    validation_loss: float | None
    noise_scale: float | None


def trials(
    build_model: Callable[[], Any],
    data: Any,
    batch_sizes: Sequence[int],
    *,
    samples: int,
    validation: Any,
    progress: Callable[[Trial], None] | None = None,
) -> list[Trial]:
    """Return a trial per batch size, each from the weights of the first model."""
    stream, weights, found = as_stream(data), None, []
    for size in batch_sizes:
        model = build_model()
        _build(model, stream)
        weights = model.get_weights() if weights is None else weights
        model.set_weights(weights)
        found.append(_tried(model, stream, size, samples=samples, validation=validation))
        if progress:
            progress(found[-1])
        del model
        give_back_freed()
    return found


def as_stream(data: Any) -> Stream:
    """Return the data as a stream of `(x, y)`."""
    if isinstance(data, Stream):
        return data
    return from_arrays(data)


def _build(model: Any, stream: Stream) -> None:
    """Give the model its weights by showing it a few records."""
    from anybatch.train import evaluate

    evaluate(model, batched(stream, 2, 2), verbose=0)


def _tried(model: Any, stream: Stream, size: int, *, samples: int, validation: Any) -> Trial:
    from anybatch.train import evaluate, fit

    probe = batched(stream, min(samples, _PROBE), 256)
    noise = measured_noise(model, next(iter(batched(stream, 256, 256))))
    with PeakWatch() as watch:
        fit(model, batched(stream, samples, size), verbose=0)
    loss = _loss(evaluate(model, probe, verbose=0))
    held_out = None if validation is None else _loss(evaluate(model, _held_out(validation), verbose=0))
    return Trial(
        size,
        -(-samples // size),
        _speed(model, stream, min(samples, _TIMED_STEPS * size), size),
        watch.peak_bytes - watch.before_bytes,
        loss,
        held_out,
        None if noise is None else noise.scale,
    )


def _speed(model: Any, stream: Stream, samples: int, size: int) -> float:
    """Return samples per second of a second fit, when the step is traced."""
    from anybatch.train import fit

    data = batched(stream, samples, size)
    start = time.perf_counter()
    fit(model, data, verbose=0)
    return samples / (time.perf_counter() - start)


def _loss(found: Any) -> float:
    return float(found[0] if isinstance(found, list | tuple) else found)


def _held_out(validation: Any) -> Stream:
    stream = as_stream(validation)
    return stream if _own_batch(stream._stage) else stream.batch(256)  # noqa: SLF001 - what it is made of


def batched(stream: Stream, samples: int, size: int) -> Stream:
    """Return so many samples in batches of another size, whatever batch the stream has of its own."""
    stage = stream._stage  # noqa: SLF001 - a stream is its stages
    if not _own_batch(stage):
        return stream.take(samples).batch(size)
    return Stream(_rebatched(stage, size)).take(-(-samples // size))


def _own_batch(stage: Stage) -> bool:
    while isinstance(stage, Operation):
        if isinstance(stage, Batch):
            return True
        stage = stage.parent
    return False


def _rebatched(stage: Stage, size: int) -> Stage:
    if isinstance(stage, Batch):
        return replace(stage, size=size)
    if isinstance(stage, Operation):
        return replace(stage, parent=_rebatched(stage.parent, size))
    return stage
