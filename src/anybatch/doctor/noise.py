"""How noisy gradients are: which batch size is large enough for its gradient to be mostly signal."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anybatch.stream.structure import row_count, rows_between


@dataclass(frozen=True, slots=True)
class Noise:
    """Variance of one record's gradient, and the squared length of the true gradient, as estimated."""

    variance: float
    signal: float

    @property
    def scale(self) -> float | None:
        """The batch at which noise and signal are equal; None where noise hides the signal altogether."""
        return self.variance / self.signal if self.signal > 0 else None


def noise_of(parts: Sequence[NDArray[np.float64]], sizes: Sequence[int]) -> Noise | None:
    """Return the noise that the mean gradients of some parts of one batch show; None for fewer than two.

    >>> rng = np.random.default_rng(0)
    >>> parts = [1 + rng.normal(size=(8, 1000)).mean(axis=0) for _ in range(200)]
    >>> print(f"{noise_of(parts, [8] * 200).scale:.1f}")
    1.0
    """
    if len(parts) < 2:
        return None
    rows = np.array(sizes, np.float64)
    whole = np.average(np.stack(parts), axis=0, weights=rows)
    squares = float(np.mean([float(part @ part) for part in parts]))
    length = float(whole @ whole)
    total = float(rows.sum())
    variance = (squares - length) / (float((1 / rows).mean()) - 1 / total)
    return Noise(variance, length - variance / total)


def measured_noise(model: Any, batch: Any, *, parts: int = 8) -> Noise | None:
    """Return the noise of a model's gradients on one batch, or None where they cannot be laid end to end."""
    from anybatch.train import gradients

    x, y = batch[:2]
    rows = row_count(y)
    cuts = np.linspace(0, rows, min(parts, rows) + 1).astype(int)
    found, sizes = [], []
    for start, stop in pairwise(cuts.tolist()):
        part = rows_between((x, y), start, stop)
        each, _ = gradients(
            lambda *one: _loss(model, *one), model.trainable_variables, part, reduction="mean"
        )
        flat = [_flat(one) for one in each]
        if any(one is None for one in flat):
            return None
        found.append(np.concatenate([one for one in flat if one is not None]))
        sizes.append(stop - start)
    return noise_of(found, sizes)


def _loss(model: Any, x: Any, y: Any) -> Any:
    return model.compute_loss(x=x, y=y, y_pred=model(x, training=True))


def _flat(gradient: Any) -> NDArray[np.float64] | None:
    """Return one gradient as a row of numbers; sparse ones, of embeddings, are left alone."""
    if gradient is None or hasattr(gradient, "indices"):
        return None
    return np.asarray(gradient, np.float64).ravel()
