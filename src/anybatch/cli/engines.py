"""The engine that `--engine` and `--address` name."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anybatch.cli.arguments import EngineName
    from anybatch.scale import Engine


@contextmanager
def named_engine(name: "EngineName | None", address: str | None) -> "Iterator[Engine | None]":
    """Give the engine, or None where none is named: then the work is done here and nothing is a job."""
    if name is None and address is not None:
        raise ValueError(f"--address {address} names a Ray cluster; --engine ray works there")
    if name is None:
        yield None
        return
    from anybatch.scale import opened_engine

    with opened_engine(name, address) as engine:
        yield engine
