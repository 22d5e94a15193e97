"""What a script does with its chains and models: the result of reading it."""

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, TypeAlias

from anybatch.doctor.lint.script import Made, Script
from anybatch.doctor.lint.values import Model, Pipeline, Value

Names: TypeAlias = dict[str, Value]

_HELD_OUT_WORDS = ("val", "test", "eval", "predict", "infer")


class Purpose(Enum):
    """What a chain is used for."""

    TRAINING = auto()
    HELD_OUT = auto()
    """Validation, evaluation or prediction: its order does not matter."""
    LOOKING = auto()
    """Somebody walks over it and trains nothing."""
    UNKNOWN = auto()


@dataclass(frozen=True, eq=False, slots=True)
class Use:
    """A chain as it is when somebody takes elements from it."""

    chain: Pipeline
    purpose: Purpose
    call: ast.Call | None = None
    """The `fit` or the like that takes them."""


@dataclass(frozen=True, eq=False, slots=True)
class Fit:
    """A call of `fit`."""

    call: ast.Call
    model: str
    kept_as: str
    """The name that its result is given, or ""."""
    x: Value
    batch: Value


@dataclass(frozen=True, eq=False, slots=True)
class Tape:
    """A `with GradientTape()` block, and what the names stand for at its end."""

    block: ast.With
    name: str
    names: Names


@dataclass(slots=True)
class Reading:
    """What a script does, as far as it can be read."""

    script: Script
    uses: list[Use] = field(default_factory=list)
    fits: list[Fit] = field(default_factory=list)
    tapes: list[Tape] = field(default_factory=list)
    models: dict[str, Model] = field(default_factory=dict)
    _made: dict[object, list[Any]] = field(default_factory=dict)

    def once(self, make: "Callable[[Reading], Iterable[Made]]") -> list[Made]:
        """Return what a function makes of this reading; it is made once for all rules."""
        if make not in self._made:
            self._made[make] = list(make(self))
        return self._made[make]


class Ledger:
    """Which chains were made, which of them somebody went on with or took from, and what they are called."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        # they stay alive here, so an id stands for one chain only
        self._made: list[Pipeline] = []
        self._gone_on_with: set[int] = set()
        self._names: dict[int, str] = {}

    def make(self, chain: Pipeline, parent: Pipeline | None = None) -> None:
        """Note a new chain, and that its parent is no end of its own."""
        self._made.append(chain)
        if parent is not None:
            self._gone_on_with.add(id(parent))

    def name(self, chain: Pipeline, name: str) -> None:
        """Note what a chain is called; the first name of a chain tells most."""
        self._names.setdefault(id(chain), name)

    def take(self, value: "Value | Iterable[Value]", purpose: Purpose, call: ast.Call | None = None) -> None:
        """Note that somebody takes elements from every chain in a value."""
        if isinstance(value, Pipeline):
            self._gone_on_with.add(id(value))
            self._reading.uses.append(Use(value, self._hinted(value, purpose), call))
        elif isinstance(value, tuple | list):
            for one in value:
                self.take(one, purpose, call)

    def leave(self, chain: Pipeline) -> None:
        """Note that somebody goes on with a chain in a way that cannot be followed."""
        self._gone_on_with.add(id(chain))

    def close(self) -> None:
        """Note the chains that nobody took from or went on with."""
        for chain in self._made:
            if id(chain) not in self._gone_on_with:
                self.take(chain, Purpose.UNKNOWN)

    def _hinted(self, chain: Pipeline, purpose: Purpose) -> Purpose:
        """Return what a chain is for, by its name if nothing else tells."""
        name = self._names.get(id(chain), "").lower()
        held_out = any(word in name for word in _HELD_OUT_WORDS)
        return Purpose.HELD_OUT if purpose is Purpose.UNKNOWN and held_out else purpose
