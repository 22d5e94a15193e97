"""What was measured about a data set: plain values, on which every judgement rests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anybatch.records import Seen, ShardReport, Sizes

if TYPE_CHECKING:
    # it takes longer to import than a gigabyte takes to be read
    from anybatch.train import Plan

Progress: TypeAlias = Callable[[int], None]
"""Told how many more bytes of the files were read."""

SAMPLE_BLOCK = 64
"""So many neighbours are taken together where only a sample is read."""


@dataclass(frozen=True, slots=True)
class ShardFacts:
    """One file: what its index says, and what its records hold."""

    report: ShardReport
    sizes: Sizes
    looked_at: int
    not_examples: int
    seen: tuple[Seen, ...]

    @property
    def examples(self) -> int:
        """How many of the records looked at are Examples."""
        return self.looked_at - self.not_examples


@dataclass(frozen=True, slots=True)
class Place:
    """One record: its file, and which of the file's records it is, from 0."""

    file: str
    record: int

    def __str__(self) -> str:
        return f"record {self.record:,} of `{self.file}`"


@dataclass(frozen=True, slots=True)
class LengthFacts:
    """How many values, or bytes, the records of a sample have under one name."""

    records: Mapping[int, int]
    """Length → how many records have it."""
    odd_ones: tuple[Place, ...]
    """The first few that have another length than most."""

    @property
    def usual(self) -> int:
        """The length that most have."""
        return max(self.records, key=lambda length: (self.records[length], -length))

    @property
    def usual_share(self) -> float:
        """Which fraction of the records has it."""
        return self.records[self.usual] / sum(self.records.values())


@dataclass(frozen=True, slots=True, eq=False)
class LabelFacts:
    """The labels of a sample, as the records lie."""

    name: str
    codes: NDArray[np.int64]
    """Which class each record that has a label has, as a place in `classes`."""
    classes: tuple[Any, ...]
    """The classes in their order, or for continuous labels the lower ends of ten equal parts."""
    continuous: bool
    marked: bool = False
    """Every record has a place for each class and marks one: none can be out of range."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many records each class has."""
        return np.bincount(self.codes, minlength=len(self.classes))


@dataclass(frozen=True, slots=True, eq=False)
class SampleFacts:
    """What was found in the values of some records."""

    numbers: NDArray[np.int64]
    """Which records, in the order of the files."""
    lengths: Mapping[str, LengthFacts] = field(default_factory=dict)
    largest: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Feature → the largest magnitude in each of its columns."""
    rising: Mapping[str, float] = field(default_factory=dict)
    """Feature → which fraction of the changes from record to record rises, for single numbers."""
    label: LabelFacts | None = None
    prints: frozenset[int] = frozenset()
    """Fingerprints of the records' bytes."""
    repeated: int = 0
    """How many records are equal to an earlier one."""
    pairs_apart: int = 0
    """How many of those have one earlier copy, in another block: a sample sees them if it has drawn both."""
    first_repeated: Place | None = None
    stopped_by: str = ""
    """Why the values could not be read to the end."""

    @property
    def records(self) -> int:
        """How many records were looked at."""
        return len(self.numbers)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a model shows without being run."""

    kinds: frozenset[str] = frozenset()
    """The names of its layers' classes, and of all that those are made from."""
    inputs: tuple[tuple[int | None, ...], ...] = ()
    """Its input shapes, without the batch."""
    input_names: tuple[str, ...] = ()
    units: int | None = None
    """How many values it gives per record."""
    loss: str = ""


@dataclass(frozen=True, slots=True)
class TrainingFacts:
    """What the first batches did to a model."""

    problem: str = ""
    """Why not even one batch passes."""
    x_shapes: tuple[tuple[int, ...], ...] = ()
    """What the model is given: the shape of each part of x, without the batch."""
    labels: tuple[int, ...] | None = None
    """The labels of the first batch, each once, if they are whole numbers, one per record."""
    noise_scale: float | None = None
    """The batch at which a gradient is half noise, now; None if that cannot be told."""
    input_seconds: float = 0.0
    """How long one batch takes to come."""
    forward_seconds: float = 0.0
    """How long it takes through the model, without the way back."""
    slowest_stage: str = ""
    plan: "Plan | None" = None
    """How a batch would be split under the memory that there is."""
    no_plan: str = ""
    """Why there is none."""
    inexact: tuple[str, ...] = ()
    """What makes an update in parts another one than that of the whole batch."""
    unsplit: str = ""
    """Why batches can only run whole."""
    mixing_map: str = ""
    """The map that gives a record another value when others are with it."""
    mixing_map_promised: bool = False
    """It said `batched=True`: that it looks at each record on its own."""
    grown_bytes_per_step: float = 0.0
    """How much more is held after every step, if that never stops."""
    watched_steps: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user wants to do with the data."""

    batch_size: int | None = None
    memory_bytes: int | None = None
    shuffle_buffer: int | None = None
    steps_per_epoch: int | None = None
    shuffled: bool = False
    """The records are shuffled exactly while they are read, so their order on disk does no harm."""
    streamed: bool = False
    """A stream decodes the records: what the model is given is what the stream yields."""
    changed: bool = False
    """Functions of the user change or choose records before they are trained on."""
    drop_remainder: bool = False
    """The stream leaves out what does not fill a batch."""
    prefetch: int | None = None
    """So many batches are made ahead."""


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """Everything that was measured about one data set."""

    paths: str
    """How the user named it, to be pasted behind a command."""
    shards: tuple[ShardFacts, ...]
    everything: bool
    """Every record was looked into."""
    sizes: Sizes
    sample: SampleFacts
    label: str | None = None
    """The feature that is the label, if one is."""
    model: ModelFacts | None = None
    training: TrainingFacts | None = None
    other: "Facts | None" = None
    """A second data set that must not share records with this one."""
    _by_name: dict[str, list[tuple[ShardFacts, Seen]]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        for shard in self.good:
            for seen in shard.seen:
                self._by_name.setdefault(seen.name, []).append((shard, seen))

    @property
    def good(self) -> tuple[ShardFacts, ...]:
        """The shards that could be examined."""
        return tuple(shard for shard in self.shards if not shard.report.problem)

    @property
    def compressed(self) -> bool:
        """Whether there are shards that can be read from their beginning only."""
        return any(shard.report.compression for shard in self.good)

    @property
    def records(self) -> int:
        """How many records can be read."""
        return sum(shard.report.records for shard in self.shards)

    @property
    def drawn_share(self) -> float:
        """Which fraction of the records was looked at, byte for byte."""
        return min(1.0, self.sample.records / max(1, self.records))

    @property
    def mean_bytes(self) -> float:
        """How large a record is on average."""
        return self.sizes.mean_bytes

    @property
    def names(self) -> list[str]:
        """Every feature's name."""
        return sorted({seen.name for shard in self.shards for seen in shard.seen})

    def seen(self, name: str) -> list[tuple[ShardFacts, Seen]]:
        """Return what each shard holds under a name."""
        return self._by_name.get(name, [])

    def is_number(self, name: str) -> bool:
        """Whether a feature holds numbers wherever it is."""
        return all(seen.kind in {"float", "int64"} for _, seen in self.seen(name))
