"""`check_exact`: both ways on the user's own model."""

from dataclasses import dataclass
from typing import Any

from anybatch.train.backends import backend_of


@dataclass(frozen=True, slots=True)
class Exactness:
    """How far the gradient in parts is from that of the whole batch.

    Differences are the largest of any variable, relative to the largest gradient. `noise` is what permuting
    the samples of the whole batch changes: nothing that adds them up in another order can do better.
    """

    largest_difference: float
    noise: float
    parts: int
    exact: bool
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"{self.parts} parts differ by {self.largest_difference:.1e}, a permutation by {self.noise:.1e}",
            f"exact: {'yes' if self.exact else 'no'}",
            *self.notes,
        ]
        return "\n".join(lines)


def check_exact(model: Any, batch: Any, *, parts: int = 3) -> Exactness:
    """Return how far the gradient of a batch in parts is from that of the whole batch; nothing stays changed.

    Random layers draw one row's numbers for all rows meanwhile, or nothing could be compared.

    >>> import keras, numpy as np
    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> check_exact(model, (np.ones((8, 3)), np.ones((8, 1)))).exact
    True
    """
    backend = backend_of(model)
    backend.check_training(model, None)
    backend.check_splits(model, "part")
    if not isinstance(batch, tuple):
        kind = type(batch).__name__
        raise TypeError(f"batch is a {kind}; give (x, y) of some rows, as with next(iter(stream.batch(64)))")
    batch = backend.as_keras_casts(batch)
    backend.build(model, batch)
    rows = backend.row_count(batch)
    if rows < 2:
        raise ValueError(f"a batch of {rows} rows has no parts to compare; give at least 2")
    found = backend.examined(model, batch)
    difference, noise = backend.compared(model, batch, found, min(parts, rows))
    return Exactness(difference, noise, min(parts, rows), found.exact, tuple(found.notes))
