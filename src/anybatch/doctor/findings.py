"""What a diagnosis finds: a stable code, how bad it is, the fact, its numbers, and the way out."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from anybatch.doctor.codes import CODES


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    """Training fails, or learns something else than was meant."""
    WARNING = "warning"
    """Training works and is worse, slower or larger than it has to be."""
    NOTE = "note"
    """Worth knowing; nothing has to be done."""


_RANK = {severity: rank for rank, severity in enumerate(Severity)}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found in data or in a script."""

    code: str
    severity: Severity
    what: str
    """One plain sentence."""
    evidence: str
    """The numbers, and where they come from."""
    fix: str
    """What to paste."""
    line: int | None = None
    """The line of a script."""
    replaces: tuple[int, int] | None = None
    """The first and the last line that `fix` stands for, if it can be put there as it is."""

    @property
    def title(self) -> str:
        """What the code means, in a few words."""
        return CODES[self.code].title


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings, each once, the worst first, then by line and code."""
    return sorted(dict.fromkeys(findings), key=lambda one: (_RANK[one.severity], one.line or 0, one.code))


def worst(findings: Iterable[Finding]) -> Severity | None:
    """Return the severity of the worst finding, or None without findings."""
    return min((finding.severity for finding in findings), key=_RANK.__getitem__, default=None)
