"""Functions that users pass: called so that a failure says where it happened."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from anybatch.errors import UserFunctionFailed
from anybatch.stream.chunk import Chunk


@contextmanager
def calling(stage: str, function: Callable[..., Any], chunk: Chunk) -> Iterator[None]:
    """Turn whatever the function raises into an error that names stage, function and records."""
    try:
        yield
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except Exception as cause:
        name = getattr(function, "__qualname__", type(function).__name__)
        raise UserFunctionFailed(stage, name, _where(chunk), f"{type(cause).__name__}: {cause}") from cause


def _where(chunk: Chunk) -> str:
    numbers = chunk.numbers
    if len(numbers) == 1:
        return f"record {int(numbers[0])} of epoch {chunk.epoch}"
    shown = ", ".join(str(int(number)) for number in numbers[:3])
    return f"{len(numbers):,} records of epoch {chunk.epoch} (numbers {shown}, …)"
