"""Several streams as one."""

from collections.abc import Iterable, Sequence
from typing import Any

from anybatch.stream.numbers import seed_number, shares
from anybatch.stream.several import Concat, Mix
from anybatch.stream.stage import Stage
from anybatch.stream.stream import Stream


def mix(streams: Sequence[Stream], weights: Sequence[float] | None = None, seed: int = 0) -> Stream:
    """Return several streams as one, each element drawn by chance and weight.

    >>> import numpy as np
    >>> import anybatch as ab
    >>> often, seldom = ab.from_arrays(np.zeros(300)), ab.from_arrays(np.ones(100))
    >>> mixed = mix([often, seldom], [0.75, 0.25], seed=7)
    >>> sum(1 for _ in mixed)
    400
    """
    stages = _alike(streams)
    weights = [1.0] * len(stages) if weights is None else shares(weights, len(stages))
    return Stream(Mix(stages, tuple(weights), seed_number(seed)))


def concat(streams: Sequence[Stream]) -> Stream:
    """Return several streams one after the other.

    >>> import numpy as np
    >>> import anybatch as ab
    >>> both = concat([ab.from_arrays(np.arange(3)), ab.from_arrays(np.arange(2))])
    >>> [int(one) for one in both]
    [0, 1, 2, 0, 1]
    """
    return Stream(Concat(_alike(streams)))


def _alike(streams: Sequence[Stream]) -> tuple[Stage, ...]:
    if isinstance(streams, Stream) or not isinstance(streams, Iterable):
        raise TypeError(f"several streams as one come as a list; got {_shown(streams)}")
    streams = list(streams)
    for one in streams:
        if not isinstance(one, Stream):
            raise TypeError(f"one of the streams is {_shown(one)}; from_arrays and read make streams")
    stages = tuple(stream._stage for stream in streams)  # noqa: SLF001
    if not stages:
        raise ValueError("several streams as one need at least one")
    if len({stage.batched for stage in stages}) > 1:
        raise ValueError(
            "some of the streams are batched and others are not; batch all of them, or what comes out"
        )
    return stages


def _shown(value: Any) -> str:
    return "one stream" if isinstance(value, Stream) else f"a value of type {type(value).__name__}"
