"""Findings in a script: with its line, and with the corrected lines where they can be written down."""

import ast

from anybatch.doctor.findings import Finding, Severity
from anybatch.doctor.lint.edits import Patch
from anybatch.doctor.lint.values import Step

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


def found(
    code: str,
    severity: Severity,
    where: ast.expr | ast.stmt | ast.excepthandler | Step | int,
    *,
    what: str,
    evidence: str,
    fix: str | Patch,
) -> Finding:
    """Return a finding at a place of the script."""
    line = where if isinstance(where, int) else where.line if isinstance(where, Step) else where.lineno
    if isinstance(fix, Patch):
        return Finding(code, severity, what, evidence, fix.text, line, (fix.first, fix.last))
    return Finding(code, severity, what, evidence, fix, line)
