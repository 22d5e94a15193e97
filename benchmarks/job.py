"""What the harness asks of a child, and what the child answers: plain values that are JSON."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

Purpose = Literal["check", "time", "time, then check"]
# everything; the first batch only; the first batch of a process that has imported nothing yet
Work = Literal["all", "first_batch", "first_batch_of_process"]
FINISHED = "finished"
# what a machine cannot do is no fault of a contender; failures that say so do not count as one
NOT_HERE = "not possible here"


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work for one fresh process."""

    build: str  # "module:function" of the contender, imported by the child only
    dataset: str
    shards: tuple[str, ...]
    batch: int
    purpose: Purpose
    case: str = ""
    records: int = 0  # how many the shards hold
    folder: str = ""  # where the data lies; what is made once may be kept there
    cold: bool = False  # the shards leave the page cache right before the clock starts
    group: str = ""  # the file through which the process enters a memory group
    work: Work = "all"
    cores: int = 0  # how many it may use; all if 0
    asked_at: float = 0.0  # when the process was started, on the monotonic clock

    def to_json(self) -> str:
        """Return the job as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the job that `to_json` wrote."""
        fields = json.loads(text)
        return cls(**fields | {"shards": tuple(fields["shards"])})


@dataclass(frozen=True, slots=True)
class Answer:
    """What one process found out. `failure` says why there is nothing else."""

    failure: str = ""
    proof: dict[str, Any] = field(
        default_factory=dict
    )  # records, ordered, any_order: what the contender knows
    seconds: float = 0.0
    cpu_seconds: float = 0.0  # of all threads, user and system
    first_batch_seconds: float | None = None
    later_rate: float | None = None  # records/s behind the first batch, where that one takes much longer
    read_bytes: int | None = None  # by read calls; what comes through a mapping is in page_faults
    page_faults: int = 0
    imported_at: float = 0.0  # on the monotonic clock that all processes share
    finished_at: float = 0.0
    after_import_anonymous_bytes: int | None = None
    peak_anonymous_bytes: int | None = None  # measured from outside
    peak_resident_bytes: int | None = None  # the kernel's own mark; file pages included
    state_bytes: int | None = None  # what has to be kept to go on later
    weights_difference: float | None = None  # from those of the whole batch, relative
    updates: int | None = None
    ended: str = ""  # how training ended where it may end badly: FINISHED, or what stopped it

    @property
    def growth_bytes(self) -> int | None:
        """Return what the work itself added at its peak, the imports taken off."""
        if self.peak_anonymous_bytes is None or self.after_import_anonymous_bytes is None:
            return None
        return max(0, self.peak_anonymous_bytes - self.after_import_anonymous_bytes)

    @property
    def survived(self) -> bool:
        """Return whether the work was done to its end."""
        return self.ended in {"", FINISHED}

    def to_json(self) -> str:
        """Return the answer as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the answer that `to_json` wrote."""
        return cls(**json.loads(text))
