"""Compare batch sizes: each from the same fresh weights, over the same number of samples."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from anybatch.doctor.sweep.judgement import recommended
from anybatch.doctor.sweep.trials import Trial, trials
from anybatch.units import size

__all__ = ["Sweep", "Trial", "sweep"]

HEADERS = ("batch", "updates", "samples/s", "peak", "loss", "validation loss", "noise scale")


@dataclass(frozen=True, slots=True)
class Sweep:
    """What each batch size did, and which one to take."""

    trials: tuple[Trial, ...]
    samples: int

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

    def __str__(self) -> str:
        lines = ["  ".join(f"{one!s:>15}" for one in row) for row in (HEADERS, *self.rows())]
        return "\n".join([*lines, self.verdict])

    def document(self) -> dict[str, Any]:
        """Return everything for programs; what is no number is null."""
        told = [{name: _finite(value) for name, value in asdict(one).items()} for one in self.trials]
        return {"samples": self.samples, "recommended": self.recommended, "why": self.why, "trials": told}

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
    progress: Callable[[Trial], None] | None = None,
) -> Sweep:
    """Train a fresh model at each batch size over the same number of samples, and compare.

    `build_model` returns a compiled model; all start from the weights of the first. `data` and `validation`
    are streams of `(x, y)`, whose own batch is not used, or arrays. The models are thrown away.
    """
    sizes = [int(one) for one in batch_sizes]
    if not sizes or min(sizes) < 1 or samples < 1:
        raise ValueError(f"batch sizes {sizes} and {samples} samples; name at least one of each, from 1 up")
    found = trials(build_model, data, sizes, samples=samples, validation=validation, progress=progress)
    return Sweep(tuple(found), samples)
