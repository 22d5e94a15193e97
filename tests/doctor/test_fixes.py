"""The fix that a finding proposes, applied as it stands, makes the finding go away."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import anybatch as ab
from anybatch.cli import app
from anybatch.doctor import diagnose
from tests.doctor.data_sets import FAULTS, pictures


def planted(name, folder):
    plan = FAULTS[name].plant(pictures())
    paths = plan.write(folder)
    (finding,) = [one for one in diagnose(paths, **plan.asked).findings if one.code == FAULTS[name].code]
    return plan, paths, finding


def remaining(paths, code, **asked):
    return [one for one in diagnose(paths, **asked).findings if one.code == code and one.severity != "note"]


def files_in(folder):
    return sorted(str(one) for one in Path(folder).iterdir() if not one.name.startswith("."))


@pytest.mark.parametrize(
    "name",
    [
        "a_flipped_bit_in_the_data",
        "a_flipped_bit_in_a_header",
        "zeros_between_two_records",
        "a_file_cut_in_a_record",
        "a_file_cut_in_a_header",
        "one_large_shard",
        "one_compressed_shard",
        "sorted_by_label",
        "runs_of_one_label",
        "sorted_by_a_continuous_label",
    ],
)
def test_the_proposed_command_cures(tmp_path, monkeypatch, name):
    (tmp_path / "data").mkdir()
    plan, _, finding = planted(name, tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(finding.fix.splitlines()[0])
    assert program == "anybatch"
    assert CliRunner().invoke(app, arguments).exit_code in {0, 1}
    cured = tmp_path / arguments[arguments.index("--to") + 1]
    # what could not be read lies beside the repaired shards, for whoever wants it
    shards = [file for file in files_in(cured) if ".damaged" not in file]
    assert not remaining(shards, finding.code, **plan.asked)


def test_the_empty_file_can_be_removed(tmp_path):
    _, _, finding = planted("an_empty_file", tmp_path)
    program, file = shlex.split(finding.fix.split("#")[0])
    assert program == "rm"
    Path(file).unlink()
    assert not remaining(files_in(tmp_path), "AB103")


@pytest.mark.parametrize(
    "name",
    ["a_nan", "an_infinity", "a_negative_label", "a_label_far_out", "a_constant", "a_feature_in_millions"],
)
def test_the_proposed_line_of_python_cures(tmp_path, name):
    _, paths, finding = planted(name, tmp_path)
    features = ab.infer_features(paths)
    names = {"ab": ab, "np": np, "features": features, "classes": 10, "mean": 3e6, "deviation": 2e6}
    names["data"] = ab.read(paths, features)
    exec(finding.fix, names)
    data = names["data"] if len(features) == len(ab.infer_features(paths)) else ab.read(paths, features)
    (tmp_path / "new").mkdir()
    cured = ab.write(tmp_path / "new" / "train.tfrecord", list(data))
    assert not remaining(cured, finding.code)


@pytest.mark.parametrize(
    ("name", "pattern", "argument"),
    [
        ("a_buffer_that_is_too_small", r"\.shuffle\((\d+)\)", "shuffle_buffer"),
        ("a_batch_larger_than_the_data", r"\.batch\((\d+)\)", "batch_size"),
        ("a_batch_that_does_not_fit", r"in parts of up to (\d+)", "batch_size"),
        ("too_many_steps", r"steps_per_epoch=(\d+)", "steps_per_epoch"),
    ],
)
def test_the_proposed_number_cures(tmp_path, name, pattern, argument):
    plan, paths, finding = planted(name, tmp_path)
    number = int(re.search(pattern, finding.fix)[1])
    assert not remaining(paths, finding.code, **{**plan.asked, argument: number})
