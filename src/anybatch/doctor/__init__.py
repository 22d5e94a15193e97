"""Say why training fails or is slow: what is wrong with the data, the batch size or the script."""

from anybatch.doctor.diagnosis import Diagnosis, diagnose
from anybatch.doctor.findings import Finding, Severity
from anybatch.doctor.lint import NotPython, lint, lint_text

__all__ = ["Diagnosis", "Finding", "NotPython", "Severity", "diagnose", "lint", "lint_text"]
