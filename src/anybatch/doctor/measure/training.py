"""Try a model on the first batches of a stream; its weights are put back afterwards."""

import re
import time
from dataclasses import replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from anybatch.doctor.kept import kept
from anybatch.doctor.measure.batch_mates import mixing_map
from anybatch.doctor.measure.facts import TrainingFacts
from anybatch.doctor.measure.growth import watched_growth
from anybatch.doctor.noise import measured_noise
from anybatch.errors import AnybatchError
from anybatch.stream import Stream
from anybatch.stream.structure import leaves, row_count, rows_between

if TYPE_CHECKING:
    from anybatch.train import Plan

_TIMED_BATCHES = 8
_MOST_ROWS = 512
_TELLING_ROWS = 8


def training_facts(model: Any, stream: Stream, memory_bytes: int | None) -> TrainingFacts | None:
    """Return what happens on the first batches, or None if the stream has no batches of `(x, y)`."""
    try:
        batch = next(iter(stream), None)
    except TypeError:
        return None
    if not isinstance(batch, tuple) or len(batch) < 2:
        return None
    given = TrainingFacts(x_shapes=_shapes(batch[0]), labels=_labels(batch[1]))
    problem = _problem_of_the_first_step(model, stream)
    if problem:
        return replace(given, problem=problem)
    forward_seconds = _forward_seconds(model, stream)
    input_seconds, stage = _input_seconds(stream)
    if input_seconds > forward_seconds:
        # others may have had the machine for a moment: what is slow is so twice
        input_seconds, stage = min((input_seconds, stage), _input_seconds(stream))
    mixing, growth = mixing_map(stream), watched_growth(model, stream)
    split, refused = (None, "") if memory_bytes is None else _plan(model, stream, memory_bytes)
    inexact, unsplit = _about_splitting(model, batch)
    return replace(
        given,
        noise_scale=_noise_scale(model, batch),
        input_seconds=input_seconds,
        forward_seconds=forward_seconds,
        slowest_stage=stage,
        plan=split,
        no_plan=refused,
        inexact=inexact,
        unsplit=unsplit,
        mixing_map="" if mixing is None else mixing.described(),
        mixing_map_promised=mixing is not None and mixing.columnwise,
        grown_bytes_per_step=0.0 if growth is None else growth.bytes_per_step,
        watched_steps=0 if growth is None else growth.steps,
    )


def _problem_of_the_first_step(model: Any, stream: Stream) -> str:
    from anybatch.train import evaluate

    try:
        evaluate(model, stream.take(1), verbose=0)
    except Exception as error:  # noqa: BLE001 - a user's model may raise anything, and that is the finding
        plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
        return f"{type(error).__name__}: {' '.join(plain.split())[:300]}"
    return ""


def _shapes(x: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(np.shape(one)[1:]) for one in leaves(x))


def _labels(y: Any) -> tuple[int, ...] | None:
    """Return the different labels of a batch, unless there are several per record or they are no numbers.

    >>> _labels(np.array([[1], [0], [1]])), _labels({"a": np.zeros(2), "b": np.zeros(2)})
    ((0, 1), None)
    """
    if not isinstance(y, np.ndarray) or y.size != len(y) or y.dtype.kind not in "iub":
        return None
    return tuple(np.unique(y).astype(int).tolist())


def _plan(model: Any, stream: Stream, memory_bytes: int) -> "tuple[Plan | None, str]":
    """Return the plan under this memory, or why there can be none."""
    from anybatch.train import plan

    try:
        return plan(model, stream, memory=memory_bytes), ""
    except MemoryError as error:
        return None, str(error)
    except AnybatchError:
        # training like this is refused whatever memory there is, which is told as what cannot be split
        return None, ""


def _about_splitting(model: Any, batch: Any) -> tuple[tuple[str, ...], str]:
    """Return what makes an update in parts another one, and why there can be no parts at all."""
    from anybatch.train import check_exact

    if row_count(batch[1]) < 2:
        return (), ""
    try:
        found = check_exact(model, rows_between(batch, 0, _TELLING_ROWS))
    except MemoryError:
        return (), ""
    except AnybatchError as refusal:
        return (), str(refusal)
    return (() if found.exact else found.notes), ""


def _noise_scale(model: Any, batch: Any) -> float | None:
    with kept(model):
        noise = measured_noise(model, rows_between(batch[:2], 0, _MOST_ROWS))
    return None if noise is None else noise.scale


def _input_seconds(stream: Stream) -> tuple[float, str]:
    """Return how long one batch takes to come, and the stage that most of this is spent in."""
    start = time.perf_counter()
    batches = sum(1 for _ in islice(stream, _TIMED_BATCHES))
    passed = (time.perf_counter() - start) / max(1, batches)
    return passed, slowest(stream.stats())


def slowest(stats: list[dict[str, Any]]) -> str:
    """Return the stage that is waited for longest, less what it waits itself; the source is last.

    >>> slowest([{"stage": "map", "seconds_waited": 5.0}, {"stage": "read", "seconds_waited": 1.0}])
    'map'
    """
    waited = [(one["stage"], one["seconds_waited"]) for one in stats] + [("", 0.0)]
    own = {stage: seconds - below for (stage, seconds), (_, below) in pairwise(waited)}
    return max(own, key=own.__getitem__, default="")


def _forward_seconds(model: Any, stream: Stream) -> float:
    """Return how long one batch takes through the model, forward alone, when everything is traced."""
    from anybatch.train import evaluate

    batch = next(iter(stream))
    rows = row_count(batch[1])
    start = time.perf_counter()
    evaluate(model, batch[0], batch[1], batch_size=rows, verbose=0)
    return time.perf_counter() - start
