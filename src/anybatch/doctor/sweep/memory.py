"""Peak memory against the size of the data: everything in arrays, tf.data with a shuffle buffer, anybatch."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from anybatch.doctor.sweep.found import MemoryTrial
from anybatch.doctor.sweep.trials import as_stream, repeated
from anybatch.memory import PeakWatch, give_back_freed
from anybatch.stream import Stream
from anybatch.stream.structure import joined

_BUFFER = 10_000
"""The shuffle buffer that tutorials take."""


def memory_trials(
    build_model: Callable[[], Any], data: Any, data_sizes: Sequence[int], *, batch_size: int
) -> tuple[MemoryTrial, ...]:
    """Return the peak of one epoch per way and number of samples, the smaller ones first.

    A first batch of each that nobody measures makes what a way needs once: traces, thread pools, slots.
    """
    stream, model = as_stream(data, "data"), build_model()
    for feed in WAYS.values():
        feed(model, stream, batch_size, batch_size)
    return tuple(
        MemoryTrial(way, samples, _peak(feed, model, stream, samples, batch_size))
        for way, feed in WAYS.items()
        for samples in sorted(data_sizes)
    )


def _peak(feed: Callable[..., None], model: Any, stream: Stream, samples: int, batch_size: int) -> int:
    give_back_freed()
    with PeakWatch() as watch:
        feed(model, stream, samples, batch_size)
    return max(0, watch.peak_bytes - watch.before_bytes)


def _with_arrays(model: Any, stream: Stream, samples: int, batch_size: int) -> None:
    x, y = joined(list(repeated(stream, samples, batch_size)))[:2]
    model.fit(x, y, batch_size=batch_size, verbose=0)


def _with_tf_data(model: Any, stream: Stream, samples: int, batch_size: int) -> None:
    records = repeated(stream, samples, batch_size).to_tf().unbatch()
    model.fit(records.shuffle(_BUFFER).batch(batch_size).prefetch(-1), verbose=0)


def _with_anybatch(model: Any, stream: Stream, samples: int, batch_size: int) -> None:
    from anybatch.train import fit

    fit(model, repeated(stream, samples, batch_size), verbose=0)


WAYS = {
    "anybatch": _with_anybatch,
    "tf.data, shuffle(10_000)": _with_tf_data,
    "arrays in memory": _with_arrays,
}


def told(trials: Sequence[MemoryTrial]) -> Iterator[tuple[str, list[MemoryTrial]]]:
    """Yield each way with its trials, the smallest data first."""
    for way in WAYS:
        yield way, [one for one in trials if one.way == way]
