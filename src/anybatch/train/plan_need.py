"""Whether a batch may come near what is free: a guess by what layers put out, before anything is tried."""

from anybatch.train.plan_uses import Sizes

TIMES_WEIGHTS = 4
"""Weights, their gradients and two slots."""
TIMES_ACTIVATIONS = 4
"""An update keeps what layers put out, makes as much on its way back, and has workspaces: three were seen."""
NEAR = 0.5
"""A guess may be off by a factor."""


def may_not_fit(sizes: Sizes, batch_size: int, free_bytes: int) -> bool:
    """Return whether a batch should be looked at before it is trained on.

    >>> sizes = Sizes(weights_bytes=100, layers=(("wide", 50),), sample_bytes=10)
    >>> may_not_fit(sizes, 8, 10_000), may_not_fit(sizes, 64, 10_000)
    (False, True)
    """
    per_sample = TIMES_ACTIVATIONS * sizes.activations_bytes + sizes.sample_bytes + sizes.slices_bytes
    return TIMES_WEIGHTS * sizes.weights_bytes + batch_size * per_sample > NEAR * free_bytes
