"""What is added to an error of the model where a stream yields columns by name."""

from collections.abc import Callable, Mapping
from functools import wraps
from traceback import walk_tb
from typing import ParamSpec, TypeVar

from anybatch.stream import Stream

Given = ParamSpec("Given")
Made = TypeVar("Made")


def naming_columns(train: Callable[Given, Made]) -> Callable[Given, Made]:
    """Return `fit` and its like, whose errors say so if nobody has said which column is x and which is y."""

    @wraps(train)
    def call(*args: Given.args, **kwargs: Given.kwargs) -> Made:
        try:
            return train(*args, **kwargs)
        except (TypeError, ValueError) as error:
            data = args[1] if len(args) > 1 else kwargs.get("x")
            names = _names(data) if isinstance(data, Stream) and not _is_ours(error) else []
            if names:
                error.add_note(_note(names))
            raise

    return call


def _is_ours(error: Exception) -> bool:
    """Whether an error was raised here, and so says all there is to say, and not by model or framework."""
    *_, (frame, _) = walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__", "")).startswith("anybatch")


def _names(stream: Stream) -> list[str]:
    """Return the names of the columns that the stream yields, if it yields such."""
    try:
        first = next(iter(stream.take(1)), None)
    except Exception:  # noqa: BLE001 - what it says is said already
        return []
    return list(map(str, first)) if isinstance(first, Mapping) else []


def _note(names: list[str]) -> str:
    x, y = (names[0], names[-1]) if len(names) > 1 else (names[0], None)
    called = f".as_supervised({x!r})" if y is None else f".as_supervised({x!r}, {y!r})"
    return (
        f"the stream yields the columns {', '.join(names)} by name, all of them as x; "
        f"{called} says which is x and which is y"
    )
