"""Models that a user names as FILE:FUNCTION."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any


def built_model(named: str) -> Any:
    """Run a function of a file and return the model it makes; of `(model, stream)` the model."""
    made = called(named)
    return made[0] if isinstance(made, tuple) else made


def called(named: str) -> Any:
    """Return what FUNCTION of FILE returns. The file is run as a module, so a `__main__` part is not."""
    file, _, name = named.rpartition(":")
    if not file or not name:
        raise ValueError(f"`{named}` names no function; write FILE:FUNCTION, such as model.py:build")
    path = Path(file)
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(2, "no Python file of this name", file)
    module = module_from_spec(spec)
    # functions it pickles, and modules beside it, are looked for by these
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent.resolve()))
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise ValueError(f"`{file}` has no function `{name}`")
    return function()
