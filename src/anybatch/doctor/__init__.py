"""Say why training fails or is slow: what is wrong with the data, the batch size or the script."""

from anybatch.doctor.diagnosis import Diagnosis, diagnose
from anybatch.doctor.findings import Finding, Severity
from anybatch.doctor.lint import NotPython, lint, lint_text
from anybatch.doctor.sweep import Sweep, sweep

__all__ = [
    "Diagnosis",
    "Finding",
    "NotPython",
    "Severity",
    "Sweep",
    "diagnose",
    "lint",
    "lint_text",
    "sweep",
]
