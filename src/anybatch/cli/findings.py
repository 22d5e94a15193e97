"""Findings as commands show them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anybatch.cli.failures import FINE, WRONG
from anybatch.cli.report import plural, say

if TYPE_CHECKING:
    from anybatch.doctor import Finding

_INDENT = "    "


def exit_code(findings: "Sequence[Finding]") -> int:
    """Return 1 if there is more than notes."""
    return WRONG if any(finding.severity != "note" for finding in findings) else FINE


def show_findings(findings: "Sequence[Finding]", file: str = "") -> None:
    """Print each finding with its evidence and its fix."""
    for finding in findings:
        where = f"{file}:{finding.line}: " if finding.line is not None else ""
        say(f"{where}{finding.severity} {finding.code}: {finding.what}")
        say(f"{_INDENT}{finding.evidence}")
        for line in finding.fix.splitlines():
            say(f"{_INDENT}> {line}")
        say()


def counted(findings: "Sequence[Finding]") -> str:
    """Return how many findings of each severity there are, as text."""
    severities = [str(finding.severity) for finding in findings]
    kinds = [(kind, severities.count(kind)) for kind in ("error", "warning", "note")]
    return ", ".join(plural(times, kind) for kind, times in kinds if times) or "nothing found"
