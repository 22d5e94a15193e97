"""How one worker ended, as its supervisor writes it down and the launcher reads it."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from anybatch.handover import Json, Orders, read_sealed, write_sealed

_FILE = "outcome.json"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One life of one worker: why it ended, and what its supervisor would do next.

    `lost`: it ended because it lost the others: somebody else is to blame.
    `curable`: starting it again may help, under the orders `then`, or under the old ones if that is None.
    """

    rank: int
    code: int
    sentence: str
    why: str = ""
    lost: bool = False
    curable: bool = False
    then: Orders | None = None
    ended: float = 0.0

    @property
    def finished(self) -> bool:
        return self.code == 0

    def write(self, folder: Path) -> None:
        """Leave it for the launcher."""
        write_sealed(folder / _FILE, asdict(self), durable=False)


def read_outcome(folder: Path) -> Outcome | None:
    """Return how the last life in a folder ended; None if nobody has written it down."""
    return outcome_of(read_sealed(folder / _FILE))


def outcome_of(found: Json | None) -> Outcome | None:
    """Return an outcome out of its fields."""
    if found is None:
        return None
    fields: dict[str, Any] = dict(found)
    fields["then"] = None if fields["then"] is None else Orders(**fields["then"])
    return Outcome(**fields)


def forget_outcome(folder: Path) -> None:
    """Remove the last one, so that it is not taken for one of the next life."""
    (folder / _FILE).unlink(missing_ok=True)
