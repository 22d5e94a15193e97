"""What the constructors of Keras models show."""

import ast

from anybatch.doctor.lint.script import Script, calls_kept
from anybatch.doctor.lint.values import Model

ACT_DIFFERENTLY = {
    "AlphaDropout",
    "BatchNormalization",
    "Dropout",
    "GaussianDropout",
    "GaussianNoise",
    "RandomContrast",
    "RandomCrop",
    "RandomFlip",
    "RandomRotation",
    "RandomTranslation",
    "RandomZoom",
    "SpatialDropout1D",
    "SpatialDropout2D",
    "SpatialDropout3D",
    "SpectralNormalization",
}
"""Layers that do something else in training than in use."""


def model_of(script: Script, call: ast.Call) -> Model | None:
    """Return the model that a call makes, or None if it makes something else."""
    name = script.dotted(call.func)
    if not name.startswith("keras."):
        return None
    last = name.rsplit(".", 1)[-1]
    if last == "Sequential":
        return _sequential(script, call)
    return Model() if last == "Model" or name.startswith("keras.applications.") else None


def reduction_of(script: Script, function: ast.expr) -> str:
    """Return the `reduction` that a loss object was made with, in small letters, or ""."""
    kept = script.once(calls_kept, script.tree)
    made = function if isinstance(function, ast.Call) else kept.get(ast.unparse(function))
    if made is None or not script.dotted(made.func).startswith("keras.losses."):
        return ""
    given = {one.arg: ast.unparse(one.value).strip("'\"").lower() for one in made.keywords}
    return given.get("reduction", "").rsplit(".", 1)[-1]


def _sequential(script: Script, call: ast.Call) -> Model:
    listed = (
        call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "layers"), None)
    )
    # an empty list stands for layers that are added, or left out of an excerpt
    if not isinstance(listed, ast.List) or not listed.elts:
        return Model()
    calls = [one for one in listed.elts if isinstance(one, ast.Call)]
    if len(calls) < len(listed.elts):
        return Model()
    layers = tuple(script.dotted(one.func).rsplit(".", 1)[-1] for one in calls)
    return Model(layers, _units(calls[-1]) if layers[-1] == "Dense" else None)


def _units(layer: ast.Call) -> int | None:
    given = [*layer.args[:1], *(one.value for one in layer.keywords if one.arg == "units")]
    value = given[0].value if given and isinstance(given[0], ast.Constant) else None
    return value if isinstance(value, int) else None
