"""A notebook is read cell by cell, as the script that it is."""

import json

import pytest

import anybatch as ab
from anybatch.doctor import NotPython

LOADS = "import tensorflow as tf\n"
MIXES_BATCHES = "\nds = tf.data.TFRecordDataset(f).batch(3).shuffle(9)\nmodel.fit(ds)"


def notebook(folder, *cells):
    path = folder / "train.ipynb"
    kinds = [{"cell_type": "markdown", "source": ["# (not Python"]}]
    kinds += [
        {"cell_type": "code", "source": cell.splitlines(keepends=True), "outputs": []} for cell in cells
    ]
    path.write_text(json.dumps({"cells": kinds, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


def test_a_trap_is_found_with_its_cell_and_its_line_there(tmp_path):
    (finding,) = [one for one in ab.lint(notebook(tmp_path, LOADS, MIXES_BATCHES)) if one.code == "AB602"]
    assert finding.line == 2
    assert finding.evidence == (
        "batch at line 2 of code cell 2, shuffle at line 2 of code cell 2 (line 2 of code cell 2)"
    )
    assert finding.fix == "ds = tf.data.TFRecordDataset(f).shuffle(9).batch(3)"
    assert finding.replaces is None


@pytest.mark.parametrize(
    "magic",
    [
        "%matplotlib inline",
        "!pip install tensorflow",
        "%%time",
        "files = !ls *.tfrecord",
        "if new:\n    !pip install keras",
        "tf.data?",
        "%%bash\nfor f in *; do echo $f; done",
    ],
)
def test_magics_and_shell_lines_are_left_out(tmp_path, magic):
    cells = (magic, MIXES_BATCHES) if "bash" in magic else (f"{magic}\n{MIXES_BATCHES}",)
    assert "AB602" in {one.code for one in ab.lint(notebook(tmp_path, LOADS, *cells))}


def test_a_cell_that_is_no_python_is_refused_with_its_number(tmp_path):
    with pytest.raises(NotPython, match=r"train\.ipynb.*code cell 2, line 1"):
        ab.lint(notebook(tmp_path, LOADS, "def"))


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"cells": 3}', "import tensorflow", '{"worksheets": []}'])
def test_what_is_no_notebook_is_refused(tmp_path, text):
    (tmp_path / "train.ipynb").write_text(text)
    with pytest.raises(NotPython, match=r"train\.ipynb.*no notebook"):
        ab.lint(tmp_path / "train.ipynb")


def test_a_notebook_without_code_has_no_findings(tmp_path):
    assert ab.lint(notebook(tmp_path)) == []
