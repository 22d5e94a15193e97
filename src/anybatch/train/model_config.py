"""What a model is made of, in words that the next process finds too: no addresses, no counted names."""

import json
import re
from contextlib import suppress
from typing import Any

_COUNTER = re.compile(r"_\d+$")
_OF_OTHERS = {"layers", "input_layers", "output_layers", "build_config", "shared_object_id"}


def config_of(of: Any) -> Any:
    """Return the config of a layer, a model or an optimizer; None if it has none, as a user's own may."""
    with suppress(Exception):
        return json.loads(json.dumps(of.get_config(), sort_keys=True, default=named))
    return None


def named(one: Any) -> Any:
    """Return what a loss, or anything else in a config, is called."""
    if isinstance(one, dict):
        return {str(name): named(value) for name, value in one.items()}
    if isinstance(one, list | tuple):
        return [named(value) for value in one]
    if one is None or isinstance(one, str):
        return one
    return getattr(one, "__qualname__", None) or [type(one).__name__, str(getattr(one, "reduction", ""))]


def layers_of(model: Any) -> list[Any]:
    """Return the class and the config of every layer, with names as they are before Keras counts them up."""
    layers = [layer for layer in model._flatten_layers() if layer is not model]  # noqa: SLF001
    return [[type(layer).__name__, _own(uncounted(config_of(layer)))] for layer in layers]


def _own(config: Any) -> Any:
    """Return a config without the layers inside it, which have their own."""
    return config and {key: value for key, value in config.items() if key not in _OF_OTHERS}


def uncounted(config: Any) -> Any:
    """Return a config with names as they are before Keras counts them up.

    >>> uncounted({"name": "dense_3", "layers": ["lstm_12"], "units": 4})
    {'name': 'dense', 'layers': ['lstm'], 'units': 4}
    """
    if isinstance(config, dict):
        return {key: uncounted(value) for key, value in config.items()}
    if isinstance(config, list):
        return [uncounted(value) for value in config]
    return _COUNTER.sub("", config) if isinstance(config, str) else config
