"""What a contender, a case and a theme are. Who takes part stands in `roster.py`, at what in `themes/`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Literal

from benchmarks.job import Work

Role = Literal["ours", "peer", "limit"]
# what a contender can be held to: the digest with or without order, a number of records or bytes
Proves = Literal["ordered", "any_order", "records", "file_bytes"]
Unit = Literal["records", "bytes", "shards"]
# in a process of its own, leaving indexes behind; after the first timed run; or by every run
Check = Literal["before", "after", "always"]
# which figure of an answer a table is about; `measures.py` says how it reads and which way is better
Measured = Literal["rate", "first_batch", "resume", "growth", "difference", "survival"]


@dataclass(frozen=True, slots=True)
class Contender:
    """One row of a table."""

    name: str
    build: str  # "module:function" below benchmarks.contenders
    role: Role
    proves: Proves
    note: str = ""
    environment: str = ""  # a list under benchmarks/environments; ours if empty
    form: str = ""  # what `forms.py` makes of the same records before anybody is timed; TFRecord if empty
    quick: bool = True  # whether it takes part in quick runs
    fewer: bool = False  # whether full runs give it the records of quick ones: all would take many minutes


@dataclass(frozen=True, slots=True)
class Case:
    """One table: the same work for every contender; the first of role `ours` is the measure."""

    name: str
    title: str
    dataset: str  # none if empty: the contenders make up their own
    unit: Unit
    contenders: tuple[Contender, ...]
    batch: int = 512
    # `third`: cold, and the process may hold a third of the data at a time, page cache included
    cache: Literal["warm", "cold", "third"] = "warm"
    measured: Measured = "rate"
    work: Work = "all"
    rounds: int = 99  # no more than so many, where the answer is the same every time
    cores: int = 0  # how many the contender may use; all if 0
    quick: bool = True  # whether it is part of quick runs
    check: Check = "after"
    promised: Mapping[str, int] = field(default_factory=dict)  # what must be proven where nothing was written

    def for_quick(self) -> "Case":
        """Return the case with those only that take part in quick runs."""
        return replace(self, contenders=tuple(one for one in self.contenders if one.quick))

    def slow(self, *names: str) -> "Case":
        """Return the case with some contenders given fewer records, and left out of quick runs."""
        marked = (
            replace(one, quick=False, fewer=True) if one.name in names else one for one in self.contenders
        )
        return replace(self, contenders=tuple(marked))

    def without(self, names: Sequence[str]) -> "Case":
        """Return the case with some contenders left out."""
        return replace(self, contenders=tuple(one for one in self.contenders if one.name not in names))


@dataclass(frozen=True, slots=True)
class Theme:
    """One question, asked about several data sets."""

    name: str
    title: str
    cases: tuple[Case, ...]

    def sized(self, *, quick: bool) -> tuple[Case, ...]:
        """Return the cases of a full or of a quick run."""
        return tuple(case.for_quick() for case in self.cases if case.quick) if quick else self.cases


THEMES = (
    "in_order",
    "shuffled",
    "beyond_cache",
    "jpeg",
    "index",
    "first_batch",
    "resume",
    "data_size",
    "cores",
    "training",
    "exactness",
    "survival",
)


def load_theme(name: str) -> Theme:
    """Return the theme that `benchmarks/themes/NAME.py` describes."""
    module: Any = import_module(f"benchmarks.themes.{name}")
    theme: Theme = module.THEME
    return theme
