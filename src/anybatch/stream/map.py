"""A function applied to every element."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from anybatch.stream.chunk import Chunk, State
from anybatch.stream.functions import made_of_all, made_of_each, taking
from anybatch.stream.order import OneToOne, run_map
from anybatch.stream.run import Run
from anybatch.stream.seeds import generator, seeds_of
from anybatch.stream.stage import HOLDING_WEIGHT
from anybatch.stream.structure import Loose, row_count


class Mapped(OneToOne):
    """A map of any kind: on a small pool of threads, in order."""

    __slots__ = ()

    def open(self, run: Run, state: State) -> Iterator[Chunk]:
        return run_map(self, run, lambda below: self.parent.open(below, state), self.parent.weight)

    @property
    def weight(self) -> int:
        return self.parent.weight + HOLDING_WEIGHT


@dataclass(frozen=True, slots=True)
class Map(Mapped):
    """Before `batch` record by record, behind it the whole batch; `columnwise`: some records at a time."""

    function: Callable[[Any], Any]
    columnwise: bool

    def change(self, chunk: Chunk) -> Chunk:
        call = _returned(taking(self.function))
        if not (chunk.whole or self.columnwise):
            return chunk.with_value(Loose(made_of_each("map", self.function, chunk, call)))
        made = made_of_all("map", self.function, chunk, lambda columns: _checked(call(columns), chunk))
        return chunk.with_value(made)

    def described(self) -> str:
        return f"map({_name(self.function)}{', batched=True' * self.columnwise})"


@dataclass(frozen=True, slots=True)
class RandomMap(Mapped):
    """The same with randomness that depends on the seed, the epoch and the record, and on nothing else."""

    function: Callable[[Any, Any], Any]
    seed: int
    columnwise: bool

    def change(self, chunk: Chunk) -> Chunk:
        seeds = seeds_of(self.seed, chunk.epoch, chunk.numbers)
        call = _returned(self.function)
        if not (chunk.whole or self.columnwise):
            each = map(generator, seeds)
            made = made_of_each("random_map", self.function, chunk, lambda one: call(one, next(each)))
            return chunk.with_value(Loose(made))
        random = seeds if self.columnwise else generator(np.bitwise_xor.reduce(seeds))
        made = made_of_all(
            "random_map",
            self.function,
            chunk,
            lambda columns: _checked(call(columns, random), chunk),
        )
        return chunk.with_value(made)

    def described(self) -> str:
        batched = ", batched=True" * self.columnwise
        return f"random_map({_name(self.function)}, seed={self.seed}{batched})"


def _returned(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, with an error where it returns nothing: a `return` was forgotten."""

    def call(*given: Any) -> Any:
        made = function(*given)
        if made is None:
            raise ValueError("it returned None; return what becomes of the record, or leave it out by filter")
        return made

    return call


def _checked(value: Any, chunk: Chunk) -> Any:
    if not chunk.whole and row_count(value) != chunk.rows:
        raise ValueError(
            f"it was given {chunk.rows:,} records and returned {row_count(value):,}; filter drops records"
        )
    return value


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)
