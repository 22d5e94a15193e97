"""What became of plain Keras, in one plain sentence for people."""

from dataclasses import dataclass
from pathlib import Path

from anybatch.handover import Journal
from anybatch.supervise.folder import run_folder
from anybatch.supervise.verdict import OF_MEMORY, Cause


@dataclass(frozen=True, slots=True)
class Ending:
    """How a supervised script ended, as its supervisor wrote it down.

    >>> killed = Ending(137, "killed for memory", "the kernel killed it for memory at 460 MiB of 460 MiB")
    >>> print(killed)
    plain Keras was killed by the kernel: the kernel killed it for memory at 460 MiB of 460 MiB
    >>> print(Ending(0))
    plain Keras finished after all: on this machine it needs less than that
    >>> print(Ending(1, "disk full", "the disk is full"))
    plain Keras ended for another reason than memory: the disk is full
    """

    exit_code: int
    cause: str = ""
    sentence: str = ""

    @property
    def of_memory(self) -> bool:
        """Whether it ended because memory ran out, whoever ended it."""
        return self.cause in OF_MEMORY

    def __str__(self) -> str:
        if self.exit_code == 0:
            return "plain Keras finished after all: on this machine it needs less than that"
        if self.cause == Cause.KILLED_FOR_MEMORY:
            return f"plain Keras was killed by the kernel: {self.sentence}"
        if self.cause == Cause.OVER_LIMIT:
            # without a group of its own nothing in the kernel knows of the limit
            return (
                "plain Keras was ended by the supervisor, because no memory group can be made here "
                f"and it watches the limit itself: {self.sentence}"
            )
        if self.of_memory:
            return f"plain Keras ran out of memory: {self.sentence}"
        if self.sentence:
            return f"plain Keras ended for another reason than memory: {self.sentence}"
        return f"plain Keras ended with exit code {self.exit_code}, and its supervisor has not said why"


def ending_of(script: Path, exit_code: int) -> Ending:
    """Return how a script ended that `anybatch run` has supervised, from the papers that it left."""
    if exit_code == 0:
        return Ending(exit_code)
    entries = Journal(run_folder(str(script), ())).entries()
    ended = next((entry for entry in reversed(entries) if entry.get("event") == "ended"), {})
    return Ending(exit_code, str(ended.get("cause", "")), str(ended.get("sentence", "")))
