"""Batches of (x, y) out of files alone, where it is clear which features a model takes."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from anybatch.doctor.measure.facts import Facts, ModelFacts
from anybatch.errors import AnybatchError
from anybatch.records import Numbers, Ragged, infer_features
from anybatch.stream import Stream, read

_USUAL_BATCH = 32


def supervised_from(facts: Facts, batch_size: int | None) -> Stream | None:
    """Return the files as batches for the model, or None where only its user knows how they become such."""
    files = [shard.report.file for shard in facts.good if shard.report.records]
    if facts.model is None or facts.label is None or not files:
        return None
    try:
        with warnings.catch_warnings():
            # what differs between shards is a finding, and told as one
            warnings.simplefilter("ignore")
            features = infer_features(files)
            x = _taken(facts.model, features, facts.label)
            if x is None or not isinstance(features.get(facts.label), Numbers):
                return None
            names = [*(x.values() if isinstance(x, dict) else [x]), facts.label]
            data = read(files, {name: features[name] for name in names}, on_corrupt="skip")
            return data.batch(batch_size or _USUAL_BATCH).as_supervised(x, facts.label)
    except (AnybatchError, OSError):
        return None


def _taken(model: ModelFacts, features: Mapping[str, Any], label: str) -> str | dict[str, str] | None:
    """Return the feature that the model takes, or several by the names of its inputs.

    >>> model = ModelFacts(inputs=((4,),), input_names=("input_layer",))
    >>> _taken(model, {"x": Numbers("float32", (4,)), "id": Numbers("int64"), "y": Numbers("int64")}, "y")
    'x'
    """
    inputs = {name: one for name, one in features.items() if name != label}
    if len(model.inputs) > 1 or (model.input_names and model.input_names[0] in inputs):
        return _by_name(model.input_names, inputs)
    fitting = [name for name, one in inputs.items() if model.inputs and _fits(one, model.inputs[0])]
    if len(fitting) == 1:
        return fitting[0]
    (only, *others) = inputs.items() if inputs else [("", None)]
    return only[0] if not others and isinstance(only[1], Numbers | Ragged) and _is_number(only[1]) else None


def _by_name(names: Sequence[str], inputs: Mapping[str, Any]) -> str | dict[str, str] | None:
    if not names or not all(name in inputs and _is_number(inputs[name]) for name in names):
        return None
    return names[0] if len(names) == 1 else {name: name for name in names}


def _fits(feature: Any, shape: Sequence[int | None]) -> bool:
    return isinstance(feature, Numbers) and tuple(feature.shape or (1,)) == tuple(shape)


def _is_number(feature: Any) -> bool:
    return isinstance(feature, Numbers | Ragged) and feature.dtype != "bytes"
