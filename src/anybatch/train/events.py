"""What happened to the memory while training ran."""

import logging
from dataclasses import dataclass
from typing import Any

LOG = logging.getLogger("anybatch.train")


@dataclass(frozen=True, slots=True)
class Event:
    """One change of the part size, and why.

    `kind` is "exhausted" (memory ran out and the rest was done in smaller parts) or "grown" (a larger part is
    tried again after a quiet time). `phase` is "part", "commit", "test" or "predict".
    """

    kind: str
    phase: str
    step: int
    rows: int
    next_rows: int
    reason: str = ""

    def __str__(self) -> str:
        if self.kind == "grown":
            return f"step {self.step}: parts of {self.next_rows} rows are tried again, {self.rows} before"
        if self.phase == "commit":
            return f"step {self.step}: memory ran out in the update, which is done again: {self.reason}"
        return (
            f"step {self.step}: memory ran out in a {self.phase} of {self.rows} rows, "
            f"goes on with {self.next_rows}: {self.reason}"
        )


def tell_inexact(found: Any) -> None:
    """Log in one line what makes parts of a batch differ from the whole of it; nothing where they do not."""
    if not found.exact:
        LOG.warning("in parts this is not exactly the update of the whole batch: %s", "; ".join(found.notes))


def noted(events: list[Event], event: Event) -> None:
    """Keep an event and log it in one line."""
    events.append(event)
    LOG.warning("%s", event)
