"""Train a model whole and in parts from the same state, and compare what came out."""

from typing import Any

import keras
import numpy as np

import anybatch as ab
from tests.train.cases import BATCH, Case

EPOCHS = 7
"""Of three updates each: 21."""

PARTS = {2: 11, 3: 7, 7: 3, "uneven": 4}
"""How many parts a batch of 21 has with a part size; 4 makes parts of 4 and 3."""


class Trained:
    """One model that can be trained again and again from its first state: traced once for all part sizes."""

    def __init__(self, case: Case) -> None:
        keras.utils.set_random_seed(3)
        self.model = case.build()
        self.given = case.data()
        first = keras.tree.map_structure(lambda array: array[:2], self.given["x"])
        self.model(first)
        self.model.optimizer.build(self.model.trainable_variables)
        self._first = [variable.numpy() for variable in self._variables]

    @property
    def _variables(self) -> list[Any]:
        return [*self.model.variables, *self.model.optimizer.variables]

    def after(self, micro: int | str, order: Any = None, **options: Any) -> tuple[list[Any], Any]:
        """Return all variables after 21 updates from the first state, and the history."""
        for variable, value in zip(self._variables, self._first, strict=True):
            variable.assign(value)
        history = ab.fit(
            self.model,
            **self._ordered(order),
            batch_size=BATCH,
            epochs=options.pop("epochs", EPOCHS),
            shuffle=False,
            verbose=0,
            micro_batch_size=micro,
            **options,
        )
        return [variable.numpy().astype(np.float64) for variable in self._variables], history

    def _ordered(self, order: Any) -> dict[str, Any]:
        if order is None:
            return self.given
        arrays = {name: value for name, value in self.given.items() if name != "class_weight"}
        return {**self.given, **keras.tree.map_structure(lambda array: array[order], arrays)}


def permuted_within_batches(rows: int, seed: int) -> Any:
    """Return an order in which every batch holds the same rows, otherwise."""
    random = np.random.default_rng(seed)
    return np.concatenate(
        [first + random.permutation(min(BATCH, rows - first)) for first in range(0, rows, BATCH)]
    )


def largest_relative_difference(found: list[Any], expected: list[Any]) -> float:
    """Return the largest difference of any variable, relative to its largest value."""
    return max(
        float(np.max(np.abs(one - other), initial=0.0) / max(np.max(np.abs(other), initial=0.0), 1e-3))
        for one, other in zip(found, expected, strict=True)
    )
