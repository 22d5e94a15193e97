"""Find the known traps in a training script by reading it; nothing of it is run."""

import os
from typing import TYPE_CHECKING

from anybatch.doctor.findings import Finding, in_order
from anybatch.doctor.lint.refusal import NotPython

# What reads scripts is imported for the first one: an eighth of what the doctor took to import, 58 of 442 ms,
# that nobody need wait who asks about data.
if TYPE_CHECKING:
    from anybatch.doctor.lint.script import Script

__all__ = ["NotPython", "lint", "lint_text"]


def lint(path: str | os.PathLike[str]) -> list[Finding]:
    """Return what is wrong with a training script or notebook, each with its line; nothing of it is run.

    Of a notebook the code cells are read one after the other; a line is that within its cell.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
    ...     print("ds = tf.data.TFRecordDataset(files).batch(8).shuffle(100)", file=script, flush=True)
    ...     [(one.line, one.code, one.fix) for one in lint(script.name)][0]
    (1, 'AB602', 'ds = tf.data.TFRecordDataset(files).shuffle(100).batch(8)')
    """
    from anybatch.doctor.lint.notebooks import is_notebook, read_notebook
    from anybatch.doctor.lint.script import parse, read_script

    if is_notebook(path):
        notebook = read_notebook(path)
        return [notebook.placed(one) for one in _judged(parse(notebook.text, os.fspath(path)))]
    return _judged(read_script(path))


def lint_text(text: str, file: str = "<script>") -> list[Finding]:
    """Return what is wrong with a script given as text.

    >>> [finding.code for finding in lint_text("model.fit(data.batch(8))  # data is unknown")]
    []
    >>> lint_text("ds = tf.data.TFRecordDataset(files).batch(8).shuffle(100)")[0].fix
    'ds = tf.data.TFRecordDataset(files).shuffle(100).batch(8)'
    """
    from anybatch.doctor.lint.script import parse

    return _judged(parse(text, file))


def _judged(script: "Script") -> list[Finding]:
    from anybatch.doctor.lint.reading import read_through
    from anybatch.doctor.lint.rules import RULES

    try:
        reading = read_through(script)
        return in_order(finding for rule in RULES for finding in rule(reading))
    except RecursionError:
        raise NotPython(script.file, 0, "its expressions are nested too deeply") from None
