"""Which part is fastest, of those that fit: plain numbers in, plain numbers out.

The largest is not always. Where every tensor's memory comes fresh from the system, a larger one takes more
pages that nobody has touched: batches of an attention model in parts of 32 took 0.8 of the time that those in
parts of 128 took. Where an allocator keeps its memory, smaller tensors stay in the processor's cache: batches
of a wide dense model in parts of 1,366 took 0.8 of the time that those in parts of 2,731 took.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import inf
from statistics import median

from anybatch.train.split import largest_part

FASTER = 0.98
"""A smaller part that takes less than this share of the time is chosen: it takes less memory, too, so that
little is lost where chance has decided."""
TIMES = (2, 3, 4)
"""Two, three and four times as many parts are timed besides, and one part more."""
SMALLEST = 8
ROUNDS, MOST_ROUNDS = 3, 12
ENOUGH_SECONDS, LONG_SECONDS = 4.0, 2.0
"""More rounds while they take no time, as single ones scatter by a tenth; one only where it takes long."""
BEATEN, DOUBT = 0.08, 0.5
"""A part that takes so much longer than the fastest does not run in the rounds that follow. At first it is
doubt divided by rounds: whatever else runs slows two rounds of a part by half, but hardly all of many."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a batch took in parts of one size, and how far it raised memory."""

    part: int
    seconds: float
    rise_bytes: int


def paces(
    time: Callable[[int], Pace | None], part: int, batch_size: int, *, most_bytes: float = inf
) -> tuple[Pace, ...]:
    """Time the part that was chosen and smaller ones, in turns, and return what each usually takes.

    `most_bytes`: what memory may rise by where nothing goes back, so that parts of many sizes take more than
    those of one.
    """
    running, timed = _sizes(part, batch_size), list[Pace]()
    for number in range(MOST_ROUNDS):
        seconds = sum(map(_seconds, timed))
        if len(running) == 1 or seconds > (LONG_SECONDS if number < ROUNDS else ENOUGH_SECONDS):
            break
        found = list(_until_full(time, running, timed, most_bytes))
        timed += found
        if len(found) < len(running):
            break
        running = _not_beaten(running, timed, number + 1) if number + 1 >= ROUNDS else running
    return tuple(_usual(timed).values())


def _until_full(
    time: Callable[[int], Pace | None], sizes: Sequence[int], before: Sequence[Pace], most_bytes: float
) -> Iterator[Pace]:
    """Time one size after the other, as long as memory would not be full if it grew once more."""
    rises = [pace.rise_bytes for pace in before]
    for size in sizes:
        if _is_full(rises, most_bytes):
            return
        pace = time(size)
        if pace is not None:
            rises.append(pace.rise_bytes)
            yield pace


def _is_full(rises: Sequence[int], most_bytes: float) -> bool:
    highest = list(accumulate(rises, max))
    grown = max((after - before for before, after in pairwise(highest)), default=0)
    return bool(highest) and highest[-1] + grown > most_bytes


def _sizes(part: int, batch_size: int) -> list[int]:
    """Return the part and those of more parts that are worth a look, the largest first."""
    count = -(-batch_size // part)
    smaller = {-(-batch_size // more) for more in (count + 1, *(times * count for times in TIMES))}
    return [part, *sorted((one for one in smaller - {part} if one >= SMALLEST), reverse=True)]


def _not_beaten(running: Sequence[int], timed: Sequence[Pace], rounds: int) -> list[int]:
    usual = _usual(timed)
    most = (1 + max(BEATEN, DOUBT / rounds)) * min(map(_seconds, usual.values()))
    return [one for one in running if usual[one].seconds < most]


def _usual(timed: Sequence[Pace]) -> dict[int, Pace]:
    """Return what each part usually takes, by part."""
    return {
        part: _usual_of([pace for pace in timed if pace.part == part]) for part in {one.part for one in timed}
    }


def _usual_of(of_one_part: Sequence[Pace]) -> Pace:
    """Return what lies between the best and the middle one.

    Where neighbours slow a machine for seconds, the best of few owes much to chance, and so does the middle.
    """
    seconds = [pace.seconds for pace in of_one_part]
    rise_bytes = max(pace.rise_bytes for pace in of_one_part)
    return Pace(of_one_part[0].part, (min(seconds) + median(seconds)) / 2, rise_bytes)


def fastest(part: int, timed: Sequence[Pace], batch_size: int) -> int:
    """Return the part itself, or a smaller one that was faster than the largest that was timed.

    What was timed may be of another limit or batch size. A batch that fits whole stays whole.

    >>> timed = [Pace(128, 1.0, 900), Pace(64, 0.8, 500), Pace(32, 0.9, 300)]
    >>> [fastest(part, timed, 256) for part in (128, 200, 40, 16, 256)]
    [64, 64, 40, 16, 256]
    """
    fitting = [pace for pace in timed if pace.part <= part]
    if not fitting or part >= batch_size:
        return part
    best, largest = min(fitting, key=_seconds), max(fitting, key=lambda pace: pace.part)
    return largest_part(batch_size, best.part) if _is_faster(best, largest) else part


def _is_faster(one: Pace, other: Pace) -> bool:
    return one.seconds < FASTER * other.seconds


def _seconds(pace: Pace) -> float:
    return pace.seconds
