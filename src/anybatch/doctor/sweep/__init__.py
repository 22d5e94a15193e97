"""Compare batch sizes: each from the same fresh weights, over the same number of samples."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

from anybatch.doctor.sweep.found import MemoryTrial, Trial
from anybatch.doctor.sweep.judgement import recommended
from anybatch.units import size

__all__ = ["MemoryTrial", "Sweep", "Trial", "sweep"]

HEADERS = ("batch", "updates", "samples/s", "peak", "loss", "validation loss", "noise scale")
MEMORY_HEADERS = ("how the data comes", "samples", "peak")


@dataclass(frozen=True, slots=True)
class Sweep:
    """What each batch size did, and which one to take.

    >>> small = Trial(32, 4, 900.0, 1 << 20, 0.5, None, None)
    >>> large = Trial(64, 2, 1800.0, 2 << 20, 0.4, None, None)
    >>> Sweep((small, large), samples=128).recommended
    64
    """

    trials: tuple[Trial, ...]
    samples: int
    memory: tuple[MemoryTrial, ...] = ()
    """Peak memory against the size of the data, where that was asked for."""

    @property
    def recommended(self) -> int:
        """The batch size to take."""
        return recommended(self.trials)[0].batch_size

    @property
    def why(self) -> str:
        """The reason."""
        return recommended(self.trials)[1]

    @property
    def verdict(self) -> str:
        """One sentence on the whole."""
        return f"Take a batch of {self.recommended:,}: {self.why}."

    def rows(self) -> list[tuple[object, ...]]:
        """Return a row of text and numbers per batch size, under `HEADERS`."""
        return [
            (
                one.batch_size,
                one.updates,
                round(one.samples_per_second),
                size(max(0, one.peak_bytes)),
                f"{one.loss:.4g}",
                "" if one.validation_loss is None else f"{one.validation_loss:.4g}",
                "" if one.noise_scale is None else f"{one.noise_scale:,.0f}",
            )
            for one in self.trials
        ]

    def memory_rows(self) -> list[tuple[object, ...]]:
        """Return a row per way and number of samples, under `MEMORY_HEADERS`."""
        return [(one.way, one.samples, size(one.peak_bytes)) for one in self.memory]

    def __str__(self) -> str:
        lines = ["  ".join(f"{one!s:>15}" for one in row) for row in (HEADERS, *self.rows())]
        return "\n".join([*lines, self.verdict])

    def document(self) -> dict[str, Any]:
        """Return everything for programs; what is no number is null."""
        told = [{name: _finite(value) for name, value in asdict(one).items()} for one in self.trials]
        return {
            "samples": self.samples,
            "recommended": self.recommended,
            "why": self.why,
            "trials": told,
            "memory": [asdict(one) for one in self.memory],
        }

    def to_json(self) -> str:
        """Return everything for programs, as text."""
        return json.dumps(self.document(), indent=2, allow_nan=False)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write one page with the table and the plots."""
        from anybatch.doctor.sweep.page import page

        Path(path).write_text(page(self), encoding="utf-8")


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value


def sweep(
    build_model: Callable[[], Any],
    data: Any,
    batch_sizes: Sequence[int],
    *,
    samples: int,
    validation: Any = None,
    data_sizes: Sequence[int] = (),
    progress: Callable[[Trial], None] | None = None,
) -> Sweep:
    """Train a fresh model at each batch size over the same number of samples, and compare.

    `build_model` returns a compiled model; all start from the weights of the first. `data` and `validation`
    are streams of `(x, y)`, whose own batch is not used, or arrays. Where the data has fewer than `samples`,
    epoch follows epoch, each in its own order. The gradient noise is that of the weights which a size ended
    with. The models are thrown away. For every one of `data_sizes` the
    peak over so many samples is measured as well: with anybatch, with tf.data and with everything in arrays,
    at the recommended batch size.

    >>> import keras, numpy as np
    >>> def build():
    ...     model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    ...     model.compile("sgd", "mse")
    ...     return model
    >>> found = sweep(build, (np.ones((64, 2)), np.ones((64, 1))), [8, 32], samples=64)
    >>> [trial.batch_size for trial in found.trials], [trial.updates for trial in found.trials]
    ([8, 32], [8, 2])
    """
    from anybatch.doctor.sweep.memory import memory_trials
    from anybatch.doctor.sweep.trials import trials
    from anybatch.stream.numbers import whole_number

    _refuse_a_finished_model(build_model)
    sizes = _sizes(batch_sizes, "batch_sizes")
    if not sizes:
        raise ValueError("batch_sizes names no size; name at least one, such as [32, 128]")
    data_sizes = _sizes(data_sizes, "data_sizes")
    samples = whole_number(samples, "samples", 1)
    found = trials(build_model, data, sizes, samples=samples, validation=validation, progress=progress)
    swept = Sweep(tuple(found), samples)
    if not data_sizes:
        return swept
    return replace(swept, memory=memory_trials(build_model, data, data_sizes, batch_size=swept.recommended))


def _refuse_a_finished_model(build_model: Any) -> None:
    # a model can be called as well, and would complain of missing inputs
    finished = hasattr(build_model, "fit") and not isinstance(build_model, type)
    if finished or not callable(build_model):
        told = f"build_model is of type {type(build_model).__name__}"
        raise TypeError(
            f"{told}; give the function that returns a compiled model, as each size needs a new one"
        )


def _sizes(given: Any, name: str) -> list[int]:
    from anybatch.stream.numbers import whole_number

    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"{name} is {given!r}; give a list of sizes, such as [32, 128]")
    return [whole_number(one, f"a size of {name}", 1) for one in given]
