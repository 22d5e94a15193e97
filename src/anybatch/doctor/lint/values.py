"""What an expression of a script is known to be, without running it."""

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeAlias


class Order(Enum):
    """What a script shows about the order of an array's rows."""

    UNKNOWN = auto()
    RANDOM = auto()
    """Drawn or permuted: any order is as good as another."""
    STACKED = auto()
    """Laid end to end from several arrays, such as one per class."""


@dataclass(frozen=True, slots=True)
class Known:
    """A constant."""

    value: int | float | str | bool | None


@dataclass(frozen=True, slots=True)
class Length:
    """The number of rows of an array whose size the script does not show."""

    of: str


@dataclass(frozen=True, slots=True)
class Array:
    """Numbers in memory. A dimension is None where the script does not show it."""

    name: str = ""
    shape: tuple[int | None, ...] | None = None
    itemsize: int = 8
    order: Order = Order.UNKNOWN

    @property
    def rows(self) -> int | None:
        """How many rows it has, if the script shows that."""
        return self.shape[0] if self.shape else None

    @property
    def n_bytes(self) -> int | None:
        """How many bytes it takes, if the script shows that."""
        if self.shape is None:
            return None
        dims = [dim for dim in self.shape if dim is not None]
        return self.itemsize * math.prod(dims) if len(dims) == len(self.shape) else None


@dataclass(frozen=True, slots=True)
class Model:
    """A Keras model; layers are their class names, None if the script does not list them."""

    layers: tuple[str, ...] | None = None
    units: int | None = None
    """How many values its last layer gives per record."""


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """One call in a chain, such as `.batch(32)`."""

    name: str
    call: ast.Call
    given: "Mapping[str, Value]" = field(default_factory=dict)

    @property
    def line(self) -> int:
        """The line on which the method's name ends."""
        return self.call.func.end_lineno or self.call.lineno

    def count(self, name: str) -> int | None:
        """Return an argument that is a whole number, if the script shows it."""
        value = self.given.get(name)
        known = value.value if isinstance(value, Known) else None
        return known if isinstance(known, int) and not isinstance(known, bool) else None


@dataclass(frozen=True, eq=False, slots=True)
class Source:
    """What a chain starts from: "files", "names" of files, "arrays", "anybatch" or "other"."""

    kind: str
    call: ast.Call
    arrays: "tuple[Value, ...]" = ()

    @property
    def rows(self) -> int | None:
        """How many records there are, if the script shows that."""
        counts = [array.rows for array in self.arrays if isinstance(array, Array)]
        return next((rows for rows in counts if rows is not None), None)


@dataclass(frozen=True, eq=False, slots=True)
class Pipeline:
    """A chain of data set operations."""

    source: Source
    steps: tuple[Step, ...] = ()

    def first(self, *names: str) -> Step | None:
        """Return the first step of one of these names."""
        return next((step for step in self.steps if step.name in names), None)

    def position(self, *names: str) -> int:
        """Return where the first such step stands, or behind the end."""
        return next((at for at, step in enumerate(self.steps) if step.name in names), len(self.steps))


Value: TypeAlias = "Known | Length | Array | Model | Pipeline | tuple[Value, ...] | ast.AST | None"
"""An AST node is a function of the script; None is anything else."""
