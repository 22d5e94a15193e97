"""What batches are made of: the class mix of stored order, of a shuffle buffer, and of random draws.

The measure is how much the mix varies from batch to batch, over how much it would vary among random
draws: 1 is random, and batches of a single class each have the batch size itself.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anybatch.doctor.measure.facts import SAMPLE_BLOCK, LabelFacts

GOOD_ENOUGH = 1.5
"""A mix that varies up to this many times as much as a random one is as good as random."""

_MOST_CELLS = 1 << 15
_MOST_CLASSES = 32


@dataclass(frozen=True, slots=True)
class Mix:
    """How the batches of one way to read the data are mixed."""

    excess: float
    """How many times as much the mix varies as among random draws."""
    noise: float
    """What chance alone does to `excess`: one standard deviation."""

    @property
    def is_off(self) -> bool:
        """Whether it is worse than random, beyond chance."""
        return self.excess > GOOD_ENOUGH and self.excess - 1 > 5 * self.noise


def stored_mix(label: LabelFacts, batch_size: int) -> Mix:
    """Return the mix of batches cut from the records as they lie.

    >>> codes = np.repeat(np.arange(4), 50)
    >>> stored_mix(LabelFacts("label", codes, (0, 1, 2, 3), continuous=False), 10).excess
    10.0
    """
    codes, shares = _common(label)
    size = max(2, min(batch_size, len(codes) // 2))
    batches = codes[: len(codes) // size * size].reshape(-1, size)
    if len(shares) < 2 or not len(batches):
        return Mix(1.0, 0.0)
    mixes = np.stack([(batches == one).mean(axis=1) for one in range(len(shares))], axis=1)
    excess = size * _distance(mixes, shares) / (len(shares) - 1)
    return Mix(round(excess, 3), float(np.sqrt(2 / ((len(shares) - 1) * len(batches)))))


def buffered_mix(label: LabelFacts, batch_size: int, buffer: int, records: int) -> Mix:
    """Return the mix of batches drawn from a shuffle buffer, as tf.data's, over so many records.

    The buffer starts with the first records, then one in so many is replaced with each draw, and at the end
    it is emptied: what is drawn follows an exponential mean of what went in.
    """
    codes, shares = _common(label)
    stored = stored_mix(label, batch_size)
    if buffer >= records or len(shares) < 2 or len(codes) < 4:
        return Mix(1.0, stored.noise)
    if buffer <= batch_size:
        # it hands on hardly more than the neighbours that it was given
        return stored
    stretch = max(1.0, records / len(codes))
    drift = _drift(codes, shares, buffer / stretch)
    if stretch > 1:
        # fewer blocks lie in the buffer than records would, and so vary more: as much as in any other order
        any_order = _drift(_blocks_permuted(codes), shares, buffer / stretch)
        drift -= any_order * (1 - 1 / stretch)
    excess = 1 + batch_size * max(0.0, drift) / (len(shares) - 1)
    return Mix(round(min(excess, stored.excess), 3), stored.noise)


def _drift(codes: NDArray[np.int64], shares: NDArray[np.float64], buffer: float) -> float:
    """Return how far what a buffer holds is from the whole, on average over all draws, beyond chance."""
    cell = max(1, len(codes) // _MOST_CELLS)
    cells = codes[: len(codes) // cell * cell].reshape(-1, cell)
    local = np.stack([(cells == one).mean(axis=1) for one in range(len(shares))], axis=1)
    places = max(1, min(round(buffer / cell), len(cells) - 1))
    drawn = (((_through_buffer(local, places) - shares) ** 2) / shares).sum(axis=1)
    by_chance = (len(shares) - 1) / (2 * places * cell)
    # as many draws as there are places come from the buffer as it is in the end
    return max(0.0, float((drawn.sum() + drawn[-1] * places) / (len(drawn) + places)) - by_chance)


def _blocks_permuted(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    blocks = codes[: len(codes) // SAMPLE_BLOCK * SAMPLE_BLOCK].reshape(-1, SAMPLE_BLOCK)
    return np.random.default_rng(0).permutation(blocks, axis=0).ravel() if len(blocks) > 1 else codes


def smallest_buffer(label: LabelFacts, batch_size: int, records: int) -> int:
    """Return a buffer, to a quarter, from which batches are as good as random; at most all records."""
    sizes = [int(2 ** (power / 4)) for power in range(4, 4 * max(2, records.bit_length()))]
    candidates = [size for size in dict.fromkeys(sizes) if size < records]
    low, high = 0, len(candidates)
    while low < high:
        middle = (low + high) // 2
        if buffered_mix(label, batch_size, candidates[middle], records).excess <= GOOD_ENOUGH:
            high = middle
        else:
            low = middle + 1
    return candidates[low] if low < len(candidates) else records


def classes_per_batch(label: LabelFacts, batch_size: int) -> tuple[float, float]:
    """Return how many classes a batch holds on average, as the records lie and among random draws."""
    codes = label.codes
    size = max(1, min(batch_size, len(codes)))
    batches = codes[: len(codes) // size * size].reshape(-1, size)
    stored = float(np.mean([len(np.unique(batch)) for batch in batches[:: max(1, len(batches) // 500)]]))
    shares = label.counts / max(1, label.counts.sum())
    return stored, float((1 - (1 - shares) ** size).sum())


def _common(label: LabelFacts) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the codes and shares of the most common classes, the others as one."""
    codes = label.codes
    counts = np.bincount(codes)
    kept = np.argsort(counts, kind="stable")[::-1][:_MOST_CLASSES]
    kept = kept[counts[kept] > 0]
    renamed = np.full(len(counts), len(kept))
    renamed[kept] = np.arange(len(kept))
    codes = renamed[codes]
    shares = np.bincount(codes, minlength=len(kept)) / max(1, len(codes))
    return codes, shares[shares > 0]


def _distance(mixes: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
    """Return how far mixes are from the whole, as chi-square has it, on average."""
    return float((((mixes - shares) ** 2) / shares).sum(axis=1).mean())


def _through_buffer(local: NDArray[np.float64], places: int) -> NDArray[np.float64]:
    """Return what a buffer of so many cells holds, from when it is filled to when nothing more comes."""
    first = local[:places].mean(axis=0)
    later = local[places:] - first
    kept = np.exp(-np.arange(min(len(later), 16 * places)) / places) / places
    size = 1 << (len(later) + len(kept)).bit_length()
    transformed = np.fft.rfft(later, size, axis=0) * np.fft.rfft(kept, size)[:, None]
    return np.vstack([first, first + np.fft.irfft(transformed, size, axis=0)[: len(later)]])
