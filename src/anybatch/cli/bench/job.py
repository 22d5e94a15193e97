"""What a fresh process is asked, and what it answers: JSON both ways."""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum


class Trial(StrEnum):
    """What is measured in one process."""

    IN_ORDER = "in order"
    SHUFFLED = "shuffled"
    CONTINUED = "continued"


class Contender(StrEnum):
    """Who reads."""

    OURS = "anybatch"
    TF_DATA = "tf.data"


@dataclass(frozen=True, slots=True)
class Job:
    """One contender, one trial, once."""

    contender: Contender
    trial: Trial
    files: tuple[str, ...]
    batch_size: int
    records: int
    prove: bool = False
    """Read everything a second time, off the clock, and answer with its fingerprint."""

    def to_json(self) -> str:
        """Return the job as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Job":
        """Return the job that a text describes."""
        fields = json.loads(text)
        fields["contender"], fields["trial"] = Contender(fields["contender"]), Trial(fields["trial"])
        return cls(**fields | {"files": tuple(fields["files"])})


@dataclass(frozen=True, slots=True)
class Answer:
    """What one process measured, or in `failure` why it could not."""

    records: int = 0
    seconds: float = 0.0
    first_batch_seconds: float = 0.0
    peak_bytes: int = 0
    """Anonymous memory above what the process held before it opened the first file."""
    state_bytes: int = 0
    proof: str = ""
    failure: str = ""

    def to_json(self) -> str:
        """Return the answer as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Answer":
        """Return the answer that a text describes."""
        return cls(**json.loads(text))
