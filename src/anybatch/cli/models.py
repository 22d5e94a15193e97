"""Models that a user names as FILE:FUNCTION."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location
from inspect import signature
from pathlib import Path
from traceback import walk_tb
from types import FrameType, ModuleType
from typing import Any

from anybatch.cli import signals
from anybatch.cli.arguments import existing
from anybatch.errors import AnybatchError

_WANTED = "return a compiled model, or (model, stream)"


class BuildFailed(AnybatchError, RuntimeError):
    """A file or function of a user that raised; `line` is the innermost one in `file`, if one is known."""

    def __init__(self, named: str, file: str, line: int | None, cause: str) -> None:
        super().__init__(named, file, line, cause)
        self.named = named
        self.file = file
        self.line = line
        self.cause = cause

    def __str__(self) -> str:
        where = f"`{self.file}`" if self.line is None else f"line {self.line} of `{self.file}`"
        return f"`{self.named}` failed at {where}: {self.cause}"


def built_model(named: str) -> Any:
    """Run a function of a file and return the model it makes; of `(model, stream)` the model."""
    return built_pair(named)[0]


def built_pair(named: str) -> tuple[Any, Any]:
    """Run a function of a file and return the model and the stream it makes; None if it makes no stream."""
    made = called(named)
    pair = made if isinstance(made, tuple) else (made, None)
    if len(pair) != 2:
        raise ValueError(f"`{named}` returned a tuple of {len(pair)}; {_WANTED}")
    model, stream = pair
    if not hasattr(model, "fit"):
        told = "None" if model is None else f"a value of type {type(model).__name__}"
        raise ValueError(f"`{named}` returned {told} where a model should be; {_WANTED}")
    return model, stream


def called(named: str) -> Any:
    """Return what FUNCTION of FILE returns. The file is run as a module, so a `__main__` part is not.

    What the file prints goes to stderr: stdout is for the report.
    """
    file, _, name = named.rpartition(":")
    if not file or not name:
        raise ValueError(f"`{named}` names no function; write FILE:FUNCTION, such as model.py:build")
    spec = _spec(file)
    with _located(named, file), redirect_stdout(sys.stderr):
        module = _run(spec, file)
    function = getattr(module, name, None)
    if not callable(function):
        raise ValueError(f"`{file}` has no function `{name}`")
    _refuse_needed_arguments(function, named)
    with _located(named, file), redirect_stdout(sys.stderr):
        return function()


def _spec(file: str) -> ModuleSpec:
    spec = spec_from_file_location(Path(file).stem, file)
    if spec is None or not Path(file).is_file():
        raise FileNotFoundError(2, "no Python file of this name", file)
    existing(file)
    return spec


def _run(spec: ModuleSpec, file: str) -> ModuleType:
    module = module_from_spec(spec)
    # functions it pickles, and modules beside it, are looked for by these
    sys.modules[spec.name] = module
    sys.path.insert(0, str(Path(file).parent.resolve()))
    if spec.loader is not None:
        spec.loader.exec_module(module)
    return module


def _refuse_needed_arguments(function: Callable[..., Any], named: str) -> None:
    try:
        needed = signature(function)
    except (TypeError, ValueError):
        # what is written in C may not say
        return
    try:
        needed.bind()
    except TypeError:
        told = f"`{named}` needs arguments, {needed}, and is called without any"
        raise ValueError(f"{told}; give them defaults, or name a function that needs none") from None


@contextmanager
def _located(named: str, file: str) -> Iterator[None]:
    """Say of whatever a user's code raises where in the file it comes from."""
    try:
        yield
    except SyntaxError as error:
        # it is raised by reading, not by running: the place is in the error itself
        read = error.filename if error.filename and not _same(error.filename, file) else file
        raise BuildFailed(named, read, error.lineno, _told(error, error.msg)) from error
    except SystemExit as error:
        if _is_a_signal(error):
            raise
        cause = f"it ended the process by sys.exit({error.code!r})"
        raise BuildFailed(named, file, _innermost_line(error, file), cause) from error
    except Exception as error:
        raise BuildFailed(named, file, _innermost_line(error, file), _told(error, str(error))) from error


def _told(error: Exception, text: str) -> str:
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _is_a_signal(error: SystemExit) -> bool:
    """Whether the process was told to end from outside, which `signals` turns into this exception too."""
    *_, innermost = _frames(error)
    return innermost[0].f_code.co_filename == signals.__file__


def _innermost_line(error: BaseException, file: str) -> int | None:
    lines = [line for frame, line in _frames(error) if _same(frame.f_code.co_filename, file)]
    return lines[-1] if lines else None


def _same(one: str, other: str) -> bool:
    return Path(one).resolve() == Path(other).resolve()


def _frames(error: BaseException) -> list[tuple[FrameType, int]]:
    return list(walk_tb(error.__traceback__))
