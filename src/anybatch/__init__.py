"""Train at the batch size you want, in the memory you have."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anybatch.doctor import Diagnosis, diagnose
    from anybatch.doctor.lint import lint
    from anybatch.doctor.sweep import Sweep, sweep
    from anybatch.errors import AnybatchError, AnybatchWarning
    from anybatch.records import Bytes, Image, Numbers, Ragged, Raw, Sequence, infer_features
    from anybatch.records.write import write
    from anybatch.stream import Stream, concat, from_arrays, mix
    from anybatch.stream.read import read
    from anybatch.train import Plan, check_exact
    from anybatch.train.fit import evaluate, fit, predict
    from anybatch.train.gradients import gradients
    from anybatch.train.memory_log import memory_log
    from anybatch.train.plan import plan

__version__ = "0.1.0"

_HOMES = {
    "AnybatchError": "errors",
    "AnybatchWarning": "errors",
    "Bytes": "records",
    "Diagnosis": "doctor",
    "Image": "records",
    "Numbers": "records",
    "Plan": "train",
    "Ragged": "records",
    "Raw": "records",
    "Sequence": "records",
    "Stream": "stream",
    "Sweep": "doctor",
    "check_exact": "train",
    "concat": "stream",
    "diagnose": "doctor",
    "evaluate": "train",
    "fit": "train",
    "from_arrays": "stream",
    "gradients": "train",
    "infer_features": "records",
    "lint": "doctor",
    "memory_log": "train",
    "mix": "stream",
    "plan": "train",
    "predict": "train",
    "read": "stream",
    "sweep": "doctor",
    "write": "records",
}

__all__ = [
    "AnybatchError",
    "AnybatchWarning",
    "Bytes",
    "Diagnosis",
    "Image",
    "Numbers",
    "Plan",
    "Ragged",
    "Raw",
    "Sequence",
    "Stream",
    "Sweep",
    "check_exact",
    "concat",
    "diagnose",
    "evaluate",
    "fit",
    "from_arrays",
    "gradients",
    "infer_features",
    "lint",
    "memory_log",
    "mix",
    "plan",
    "predict",
    "read",
    "sweep",
    "write",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import anybatch` costs next to nothing."""
    if name not in _HOMES:
        # with both, Python proposes the name that was meant
        raise AttributeError(
            f"module 'anybatch' has no attribute {name!r}", name=name, obj=sys.modules[__name__]
        )
    value = getattr(import_module(f"anybatch.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
