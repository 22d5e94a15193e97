"""What else would fit a batch, and at what price: plain numbers in, plain rows out."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import isqrt

from anybatch.memory import Peaks
from anybatch.train.plan_uses import Account, Peak, Sizes
from anybatch.train.split import largest_part, part_sizes

WORTH_SAYING = 0.01
"""Less than that of the peak is no reason to change a model."""

_EXACT = "the same update in more steps"
_INEXACT = "another update: this model cannot be split exactly"
_NOTHING_SAVED = "saves nothing: the sums take more than smaller parts save"
_REMAT = "one more forward pass, about a third more time; batches stay whole (TensorFlow: see the how-to)"
_MIXED = "other rounding: activations in 16 bits, and with float16 a loss scale"
_OPTIMIZER = "another way to the minimum, with a learning rate of its own"


@dataclass(frozen=True, slots=True)
class Alternative:
    """Something that could be done instead, the peak it would have, and what it costs."""

    name: str
    predicted_peak_bytes: int
    price: str


def alternatives(
    peak: Peak, peaks: Peaks, sizes: Sizes, account: Account, *, exact: bool
) -> tuple[Alternative, ...]:
    """Return what could be done instead, all else as planned, as far as it saves anything worth saying."""
    others = (
        *_rematerialised(peak, sizes, account),
        *_in_half_precision(peak, sizes, account),
        *_with_fewer_slots(peak, sizes),
    )
    telling = (way for way in others if way.predicted_peak_bytes <= (1 - WORTH_SAYING) * peak.n_bytes)
    # slices of gradients add up to those of the whole batch: what that takes is known once it was tried
    parts_known = not sizes.slices_bytes or peaks.least_split_bytes > 0
    return (*(_smaller_parts(peak, peaks, exact) if parts_known else ()), *telling)


def _smaller_parts(peak: Peak, peaks: Peaks, exact: bool) -> Iterator[Alternative]:
    for count in (2 * peak.parts, 4 * peak.parts):
        if count > peak.batch_size:
            return
        part = largest_part(peak.batch_size, -(-peak.batch_size // count))
        predicted = peak.held_bytes + peaks.predicted_peak_bytes(part, peak.batch_size)
        price = _NOTHING_SAVED if predicted >= peak.n_bytes else _EXACT if exact else _INEXACT
        yield Alternative(f"{count} parts of {part}", predicted, price)


def _rematerialised(peak: Peak, sizes: Sizes, account: Account) -> Iterator[Alternative]:
    blocks, kept = rematerialised([n_bytes for _, n_bytes in sizes.layers])
    if blocks > 1:
        saved = round(account.activations_bytes * (1 - kept))
        yield Alternative(f"keras.remat of {blocks} blocks", peak.n_bytes - saved, _REMAT)


def rematerialised(layers: list[int]) -> tuple[int, float]:
    """Return into how many blocks to cut layers, and which share of their outputs is then held at most.

    Of a block only its output is kept; in the backward pass the inside of one block at a time comes back.

    >>> rematerialised([10] * 16)
    (4, 0.4375)
    >>> rematerialised([10])
    (1, 1.0)
    """
    whole = sum(layers)
    # equal layers want as many blocks as a block has layers; beyond twice that it only gets worse
    counts = range(1, 2 * isqrt(len(layers)) + 1) if whole else range(0)
    each = ((_held_in_blocks(layers, count) / whole, count) for count in counts)
    kept, blocks = min(each, default=(1.0, 1))
    return blocks, kept


def _held_in_blocks(layers: list[int], count: int) -> int:
    borders = accumulate([0, *part_sizes(len(layers), -(-len(layers) // count))])
    blocks = [layers[start:stop] for start, stop in pairwise(borders)]
    return sum(block[-1] for block in blocks) + max(sum(block[:-1]) for block in blocks)


def _in_half_precision(peak: Peak, sizes: Sizes, account: Account) -> Iterator[Alternative]:
    if sizes.full_precision and account.activations_bytes:
        saved = account.activations_bytes // 2
        yield Alternative("mixed precision", peak.n_bytes - saved, _MIXED)


def _with_fewer_slots(peak: Peak, sizes: Sizes) -> Iterator[Alternative]:
    if 2 * sizes.slots_bytes > 3 * sizes.weights_bytes:
        saved = sizes.slots_bytes - sizes.weights_bytes
        yield Alternative("one slot per weight (Lion, momentum)", peak.n_bytes - saved, _OPTIMIZER)
    if 2 * sizes.slots_bytes > sizes.weights_bytes:
        yield Alternative("no slots (plain SGD)", peak.n_bytes - sizes.slots_bytes, _OPTIMIZER)
