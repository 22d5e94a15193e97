import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import anybatch as ab
from anybatch.cli.bench.figures import Spread, compared
from anybatch.cli.bench.job import Answer, Contender, Trial
from tests.shard_files import flipped, some_records, write_shard

OURS, TF_DATA = Contender.OURS, Contender.TF_DATA


@pytest.fixture
def shards(tmp_path):
    rng = np.random.default_rng(0)
    records = [
        {
            "image": rng.bytes(40) + b"\0",
            "label": number,
            "weights": rng.normal(size=3).astype("float32"),
            "words": list(range(number % 4)),
        }
        for number in range(700)
    ]
    return ab.write(tmp_path / "train.tfrecord", records, shards=2)


def answered(*, ours, theirs, trial=Trial.IN_ORDER):
    answers = {(contender, one): [] for contender in Contender for one in Trial}
    return answers | {(OURS, trial): ours, (TF_DATA, trial): theirs}


def figure_of(found, name):
    return next(one for one in found.figures if one.name == name)


def test_figures_are_medians_and_a_ratio_above_one_is_in_our_favour():
    ours = [Answer(100, seconds, 0.5) for seconds in (1.0, 4.0, 2.0)]
    found = compared(answered(ours=ours, theirs=[Answer(100, 10.0, 2.0)]))
    assert figure_of(found, "in file order").by_contender[OURS] == Spread(50.0, 25.0, 100.0)
    assert figure_of(found, "in file order").ratio == 5.0
    assert figure_of(found, "first batch").ratio == 4.0


def test_records_that_differ_are_a_finding_and_a_failure_has_no_figure():
    ours, theirs = [Answer(1, 1.0, proof="a")], [Answer(1, 1.0, proof="b")]
    assert compared(answered(ours=ours, theirs=theirs)).unequal == [Trial.IN_ORDER]
    found = compared(answered(ours=ours, theirs=[Answer(failure="out of\nmemory")]))
    assert found.failures == {(TF_DATA, Trial.IN_ORDER): "out of memory"}
    assert figure_of(found, "in file order").by_contender[TF_DATA] is None
    assert not found.failed(OURS)
    assert not found.unequal


def test_without_shards_some_are_made_and_gone_afterwards(anybatch, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run = anybatch("bench", "--alone", "--rounds", "1", "--records", "1000", "--json")
    assert run.json["records"] == 1000
    assert not list(tmp_path.glob("anybatch-bench-*"))


COMMAND = """
import sys
from anybatch.cli import app
try:
    app(sys.argv[1:])
finally:
    assert not {"keras", "tensorflow"} & set(sys.modules)
"""


@pytest.mark.long
def test_both_read_the_same_records_and_the_command_itself_imports_no_framework(shards):
    options = ["--rounds", "1", "--records", "600", "--batch-size", "64", "--json"]
    ended = subprocess.run(
        [sys.executable, "-c", COMMAND, "bench", *shards, *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    found = json.loads(ended.stdout)
    assert (found["failures"], found["same_records"]) == ([], True)
    for figure in found["figures"]:
        assert all(figure["by_contender"][name]["median"] >= 0 for name in ("anybatch", "tf.data")), figure


def test_the_command_reads_as_many_records_as_asked_for_and_says_so(anybatch, shards):
    run = anybatch("bench", *shards, "--alone", "--rounds", 1, "--records", 500, "--json")
    assert (run.code, run.err) == (0, "")
    assert (run.json["records"], run.json["same_records"], run.json["failures"]) == (500, True, [])
    names = [one["name"] for one in run.json["figures"]]
    assert names[0] == "in file order"
    assert all(one["by_contender"]["anybatch"]["median"] > 0 for one in run.json["figures"][:2])


def test_damaged_records_and_records_of_any_bytes_can_be_measured(anybatch, tmp_path):
    file = write_shard(tmp_path / "any.tfrecord", some_records(300))
    content = Path(file).read_bytes()
    Path(file).write_bytes(flipped(content, len(content) // 2))
    run = anybatch("bench", file, "--alone", "--rounds", 1, "--batch-size", 32)
    assert run.code == 0, run.out
    assert "records/s" in run.out


def test_files_that_hold_nothing_are_refused(anybatch, tmp_path):
    run = anybatch("bench", write_shard(tmp_path / "empty", []))
    assert run.code == 2
    assert "0 records" in run.complaint
