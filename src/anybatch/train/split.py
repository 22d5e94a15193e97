"""How a batch is cut into parts: plain numbers in, plain numbers out."""

from bisect import bisect_left
from collections.abc import Sequence


def part_sizes(rows: int, most: int) -> list[int]:
    """Return the sizes of the fewest parts of at most `most` rows, which differ by one at most.

    Two shapes at most, so that a framework traces twice at most, and no tiny rest.

    >>> part_sizes(100, 64), part_sizes(10, 4), part_sizes(3, 8)
    ([50, 50], [4, 3, 3], [3])
    """
    if rows <= 0:
        return []
    count = -(-rows // most)
    small, larger = divmod(rows, count)
    return [small + 1] * larger + [small] * (count - larger)


def largest_part(rows: int, most: int) -> int:
    """Return how many rows the largest part has if none has more than `most`.

    >>> largest_part(1024, 768), largest_part(1024, 160)
    (512, 147)
    """
    return -(-rows // -(-rows // most))


def ladder(rows: int) -> list[int]:
    """Return the part sizes worth trying for a batch, ascending: the largest of 1, 2, 3, 4, 6, 8 … parts.

    Every size costs a trace, so there are few: each step divides the memory by 1.3 to 2.

    >>> ladder(100)
    [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 34, 50, 100]
    """
    counts = {1, rows}
    power = 1
    while power < rows:
        counts.update({min(rows, 2 * power), min(rows, 3 * power)})
        power *= 2
    return sorted({-(-rows // count) for count in counts})


def smaller(rungs: Sequence[int], failed: int) -> int:
    """Return the largest rung that is at most two thirds of what failed, and at least one.

    >>> smaller([1, 2, 4, 8, 16], 16), smaller([1, 2, 4, 8, 16], 3), smaller([1, 2], 2)
    (8, 2, 1)
    """
    fitting = [rung for rung in rungs if 3 * rung <= 2 * failed]
    return fitting[-1] if fitting else 1


def larger(rungs: Sequence[int], now: int) -> int:
    """Return the next rung above `now`, or the highest.

    >>> larger([1, 2, 4, 8], 2), larger([1, 2, 4, 8], 8)
    (4, 8)
    """
    above = bisect_left(rungs, now + 1)
    return rungs[min(above, len(rungs) - 1)]
