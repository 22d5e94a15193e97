"""Which variables an optimizer and metrics have: those of a state need not be those of today."""

import re
import warnings
from pathlib import Path
from typing import Any

from anybatch.errors import AnybatchWarning
from anybatch.train.checkpoint import ChangedSince
from anybatch.train.checkpoint_files import State
from anybatch.train.checkpoint_model import array_name, named_variables

Layout = list[str]
"""Path and shape of every variable, in the order of the arrays of a state."""

_COUNTER = re.compile(r"_\d+(?=[_/]|$)")
_SHOWN = 3


def layouts_of(model: Any) -> dict[str, Layout]:
    """Return what optimizer and metrics of a model hold, for the facts of a state."""
    found: dict[str, Layout] = {"optimizer": [], "metrics": []}
    for name, variable in named_variables(model):
        owner = name.partition("/")[0]
        if owner in found:
            found[owner].append(f"{_plain(variable.path)} {tuple(variable.shape)}")
    return found


def check_optimizer(state: State, model: Any, folder: Path) -> None:
    """Refuse a state of another optimizer: without what that has gathered it would be another training."""
    before, now = _before_and_now(state, model, "optimizer")
    if before != now:
        raise ChangedSince(str(folder), "optimizer", in_words(before, now), in_words(now, before))


def metrics_in(state: State, model: Any, folder: Path) -> dict[str, str | None]:
    """Return which arrays of a state are the model's metrics; of those it does not know, say that."""
    before, now = _before_and_now(state, model, "metrics")
    found = where_metrics_lie(before, now)
    anew = [described for described, lies in zip(now, found.values(), strict=True) if lies is None]
    if anew:
        text = f"the metrics changed since `{folder}` was written"
        warnings.warn(f"{text}; these begin anew: {', '.join(_owners(anew))}", AnybatchWarning, stacklevel=5)
    return found


def _before_and_now(state: State, model: Any, owner: str) -> tuple[Layout, Layout]:
    """Return what a state and a model hold; a state that does not say is taken for the same if it can be."""
    now = layouts_of(model)[owner]
    told = state.facts.get("variables")
    if told is not None:
        return list(told[owner]), now
    count = sum(name.startswith(f"{owner}/") for name in state.arrays)
    return now if count == len(now) else [""] * count, now


def where_metrics_lie(before: Layout, now: Layout) -> dict[str, str | None]:
    """Return which array of a state belongs to which of today's metrics; None: to none of them.

    >>> where_metrics_lie(["loss/total ()", "mae/total ()"], ["mae/total ()", "mse/total ()"])
    {'metrics/00000': 'metrics/00001', 'metrics/00001': None}
    """
    left = dict(enumerate(before))
    found: dict[str, str | None] = {}
    for number, described in enumerate(now):
        there = next((at for at, other in left.items() if other == described), None)
        found[array_name("metrics", number)] = None if there is None else array_name("metrics", there)
        left.pop(-1 if there is None else there, None)
    return found


def _owners(layout: Layout) -> list[str]:
    """Return what the owners of variables are called.

    >>> _owners(["mae/total ()", "mae/count ()", "auc/true_positives (200,)"])
    ['mae', 'auc']
    """
    return list(dict.fromkeys(described.partition("/")[0] for described in layout))


def in_words(layout: Layout, beside: Layout) -> str:
    """Return an optimizer by its variables, above all those that another one does not have.

    >>> in_words(["sgd/iteration ()", "sgd/kernel_momentum (3, 1)"], ["sgd/iteration ()"])
    'one of 2 variables, with sgd/kernel_momentum (3, 1)'
    """
    own = [described for described in layout if described and described not in beside]
    shown = [*own[:_SHOWN], *(["more"] if len(own) > _SHOWN else [])]
    return f"one of {len(layout)} variables" + (f", with {', '.join(shown)}" if shown else "")


def _plain(path: str) -> str:
    """Return a path without the numbers that Keras counts up, which are others in the next process.

    >>> _plain("sgd_1/sequential_3_dense_12_kernel_momentum")
    'sgd/sequential_dense_kernel_momentum'
    """
    return _COUNTER.sub("", path)
