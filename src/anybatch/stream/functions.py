"""Functions that users pass: called so that a failure says where it happened."""

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import Any, cast

import numpy as np

from anybatch.errors import UserFunctionFailed
from anybatch.records import give_way
from anybatch.stream.chunk import NUMBER_BITS, Chunk
from anybatch.stream.structure import as_columns, padded, records


def called(function: Any, stage: str) -> Callable[..., Any]:
    """Return what can be called; else say so where it is passed, not where it is first used."""
    if callable(function):
        return cast(Callable[..., Any], function)
    raise TypeError(f"{stage} takes a function; got a value of type {type(function).__name__}")


def taking(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a function of one element: a tuple comes as arguments of its own, as in tf.data.

    A function that does not take so many gets the tuple.
    """
    takes = cache(partial(_takes, function))

    def call(element: Any) -> Any:
        if type(element) is tuple and takes(len(element)):
            return function(*element)
        return function(element)

    return call


def made_of_each(
    stage: str, function: Callable[..., Any], chunk: Chunk, call: Callable[[Any], Any]
) -> list[Any]:
    """Return what calling a user's function makes of each element of a chunk. A failure names the element."""
    made: list[Any] = []
    try:
        for element in [chunk.value] if chunk.whole else records(chunk.value):
            give_way()
            made.append(call(element))
    except Exception as cause:
        at = len(made)
        raise _failure(stage, function, chunk if chunk.whole else chunk.cut(at, at + 1), cause) from cause
    return made


def made_of_all(stage: str, function: Callable[..., Any], chunk: Chunk, call: Callable[[Any], Any]) -> Any:
    """Return what calling a user's function makes of the columns of a chunk. A failure names the records."""
    try:
        # what is padded is an array to every function, as long as the longest that it is given
        return call(padded(as_columns(chunk.value)))
    except Exception as cause:
        raise _failure(stage, function, chunk, cause) from cause


def _failure(stage: str, function: Callable[..., Any], chunk: Chunk, cause: Exception) -> UserFunctionFailed:
    name = getattr(function, "__qualname__", type(function).__name__)
    return UserFunctionFailed(stage, name, _where(chunk), f"{type(cause).__name__}: {cause}")


def _where(chunk: Chunk) -> str:
    epochs = " and ".join(str(epoch) for epoch in np.unique(chunk.epoch))
    shown = ", ".join(_number(int(number)) for number in chunk.numbers[:3])
    if len(chunk.numbers) == 1:
        return f"record {shown} of epoch {epochs}"
    more = ", …" * (len(chunk.numbers) > 3)
    return f"{len(chunk.numbers):,} records of epoch {epochs} (numbers {shown}{more})"


def _number(number: int) -> str:
    stream, number = divmod(number, 1 << NUMBER_BITS)
    return f"{number} of stream {stream}" if stream else str(number)


def _takes(function: Callable[..., Any], arguments: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * arguments)
    except TypeError:
        return False
    except ValueError:  # a function that does not tell
        return True
    return True
