"""A small data set with two of the faults that real ones have: sorted by class, and one record damaged."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import anybatch as ab

RECORDS = 6_000
CLASSES = 10
SIDE = 28


def write_sorted_digits(folder: Path) -> None:
    """Write pictures of ten kinds of strokes, all of one kind before the next."""
    ab.write(folder / "digits.tfrecord", list(_pictures()), shards=4)


def damage(shard: Path) -> int:
    """Flip one bit somewhere in the middle of a file; return where."""
    at = shard.stat().st_size * 3 // 4 + 123
    with shard.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 4]))
    return at


def _pictures() -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(7)
    down, across = np.mgrid[0:SIDE, 0:SIDE]
    for label in range(CLASSES):
        angle = np.pi * label / CLASSES
        for _ in range(RECORDS // CLASSES):
            phase, width = rng.uniform(0, 2 * np.pi), rng.uniform(4, 6)
            waves = np.sin((down * np.cos(angle) + across * np.sin(angle)) / width * np.pi + phase)
            picture = 128 + 60 * waves + rng.normal(0, 45, waves.shape)
            yield {"image": picture.clip(0, 255).astype(np.uint8).tobytes(), "label": label}
