"""The gradient of one batch, whole, in parts and permuted."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import numpy as np
import tensorflow as tf

from anybatch.train.backends.tensorflow_feed import row_count, rows_between, tensors
from anybatch.train.backends.tensorflow_findings import Findings, one_draw_for_all_rows
from anybatch.train.backends.tensorflow_state import Undo, moved_by_a_part
from anybatch.train.backends.tensorflow_steps import Steps
from anybatch.train.split import part_sizes


def compared(model: Any, batch: Any, found: Findings, parts: int) -> tuple[float, float]:
    """Return how far the gradients in parts, and of the batch permuted, are from that of the whole batch."""
    undo = Undo(moved_by_a_part(model))
    before = undo.taken()
    steps = Steps(model, rules=found.rules)
    rows = row_count(batch)
    order = np.random.default_rng(0).permutation(rows)

    def gradients(of: Any, most: int) -> list[Any]:
        steps.begin()
        for start, n in _cuts(rows, most):
            # every part starts from the same seeds
            undo.put_back(before)
            steps.add_part(tensors(rows_between(of, start, start + n)), n / rows)
        return _as_arrays(steps.gradients(sizes_were_right=True))

    try:
        with one_draw_for_all_rows():
            whole, split = gradients(batch, rows), gradients(batch, -(-rows // parts))
            permuted = gradients(tf.nest.map_structure(lambda leaf: _taken(leaf, order), batch), rows)
    finally:
        undo.put_back(before)
    return _largest(split, whole), _largest(permuted, whole)


def _cuts(rows: int, most: int) -> Iterator[tuple[int, int]]:
    sizes = part_sizes(rows, most)
    return zip(accumulate([0, *sizes]), sizes, strict=False)


def _as_arrays(found: list[Any]) -> list[Any]:
    return [None if one is None else np.asarray(tf.convert_to_tensor(one), np.float64) for one in found]


def _taken(leaf: Any, order: Any) -> Any:
    return None if leaf is None else tf.gather(leaf, order)


def _largest(found: list[Any], expected: list[Any]) -> float:
    pairs = [(one, other) for one, other in zip(found, expected, strict=True) if other is not None]
    scale = max((float(np.max(np.abs(other), initial=0.0)) for _, other in pairs), default=1.0)
    return max((float(np.max(np.abs(one - other), initial=0.0)) for one, other in pairs), default=0.0) / (
        scale or 1.0
    )
