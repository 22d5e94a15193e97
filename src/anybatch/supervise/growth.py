"""Memory that grows with every step: a leak, told by its slope."""

from collections.abc import Sequence
from dataclasses import dataclass

from anybatch.units import size

_FEWEST_POINTS = 8
_WARM_UP = 1 / 3
_STRAIGHTNESS = 0.85
_NOTABLE = 0.1


@dataclass(frozen=True, slots=True)
class Growth:
    """A straight rise of memory over steps."""

    bytes_per_step: float
    from_step: int
    to_step: int

    def __str__(self) -> str:
        rate = size(round(self.bytes_per_step))
        return f"memory grew by {rate} per step from step {self.from_step:,} to {self.to_step:,}"

    def steps_within(self, free_bytes: int) -> int:
        """Return how many steps it takes to fill some bytes."""
        return max(1, int(free_bytes / self.bytes_per_step))


def growth_of(points: Sequence[tuple[int, int]], limit_bytes: int) -> Growth | None:
    """Return the growth in points of (step, bytes held), or None where memory does not grow steadily.

    The first third is left out: everything grows at first. What is left has to rise by a tenth of the limit
    at least, and on a line: a single jump (a larger batch, validation) is none.

    >>> str(growth_of([(step, 1000 + 10 * step) for step in range(30)], limit_bytes=1500))
    'memory grew by 10 B per step from step 10 to 29'
    >>> dying = [(30, 600)]
    >>> str(growth_of([(step, 1000 + 10 * step) for step in range(30)] + dying, limit_bytes=1500))
    'memory grew by 10 B per step from step 10 to 29'
    >>> growth_of([(step, 1000 + 400 * (step > 15)) for step in range(30)], limit_bytes=1500)
    """
    highest = _without_its_end(_highest_by_step(points))
    settled = highest[round(len(highest) * _WARM_UP) :]
    if len(settled) < _FEWEST_POINTS:
        return None
    slope, straightness = _line(settled)
    first, last = settled[0][0], settled[-1][0]
    if slope * (last - first) < _NOTABLE * limit_bytes or straightness < _STRAIGHTNESS:
        return None
    return Growth(slope, first, last)


def _without_its_end(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Leave out the last point where it lies lower: a process that is being killed gives its memory back."""
    return points[:-1] if len(points) > 1 and points[-1][1] < points[-2][1] else points


def _highest_by_step(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    highest: dict[int, int] = {}
    for step, held_bytes in points:
        highest[step] = max(held_bytes, highest.get(step, 0))
    return sorted(highest.items())


def _line(points: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Return slope and squared correlation of the line of least squares."""
    count = len(points)
    mean_x = sum(x for x, _ in points) / count
    mean_y = sum(y for _, y in points) / count
    xx = sum((x - mean_x) ** 2 for x, _ in points)
    yy = sum((y - mean_y) ** 2 for _, y in points)
    xy = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return (xy / xx, xy * xy / (xx * yy)) if xx and yy else (0.0, 0.0)
