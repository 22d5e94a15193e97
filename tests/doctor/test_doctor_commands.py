"""`anybatch doctor` and `anybatch lint`: exit codes, words for people, JSON for programs."""

import json

import pytest
from typer.testing import CliRunner

from anybatch.cli import app
from tests.doctor.data_sets import FAULTS, pictures
from tests.doctor.flawed_scripts import FLAWED
from tests.doctor.sound_scripts import SOUND

MODEL = """
import keras

def build():
    model = keras.Sequential([keras.Input((4,)), keras.layers.BatchNormalization(), keras.layers.Dense(3)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model
"""


PAIR = """
import keras
import anybatch as ab

def build():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3000), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model

def pair():
    features = {"x": ab.Numbers("float32", (4,)), "label": ab.Numbers("int64")}
    return build(), ab.read({paths!r}, features).batch(32).as_supervised("x", "label")
"""


def run(*arguments):
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_lint_ends_with_1_on_a_trap_and_names_its_line(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(FLAWED[0])
    result = run("lint", script)
    assert result.exit_code == 1
    assert f"{script}:4: warning AB601" in result.stdout


def test_lint_ends_with_0_on_a_sound_script(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(next(iter(SOUND.values())))
    assert run("lint", script).exit_code == 0


@pytest.mark.parametrize("content", [None, "def"])
def test_lint_ends_with_2_on_what_it_cannot_read(tmp_path, content):
    script = tmp_path / "train.py"
    if content:
        script.write_text(content)
    result = run("lint", script)
    assert result.exit_code == 2
    assert "train.py" in result.stderr


def test_lint_tells_programs_everything(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(FLAWED[0])
    (finding, *_) = json.loads(run("lint", script, "--json").stdout)["findings"]
    assert (finding["code"], finding["line"], finding["severity"]) == ("AB601", 4, "warning")


def test_doctor_ends_with_1_on_sorted_data_and_says_the_fix(tmp_path):
    paths = FAULTS["sorted_by_label"].plant(pictures()).write(tmp_path)
    result = run("doctor", *paths)
    assert result.exit_code == 1
    assert "AB301" in result.stdout
    assert "--shuffle" in result.stdout


def test_doctor_ends_with_0_on_clean_data(tmp_path):
    result = run("doctor", *pictures().write(tmp_path))
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Nothing stands in the way" in result.stdout


@pytest.mark.parametrize("name", ["*.tfrecord", "missing.tfrecord", "no_folder/missing.tfrecord"])
def test_doctor_ends_with_2_where_there_is_nothing(tmp_path, name):
    result = run("doctor", *pictures().write(tmp_path / "there"), f"{tmp_path}/{name}")
    assert result.exit_code == 2
    assert f"0 files match `{tmp_path}/{name}`" in result.stderr


def test_doctor_finds_a_link_that_leads_nowhere(tmp_path):
    (tmp_path / "link.tfrecord").symlink_to(tmp_path / "gone")
    result = run("doctor", *pictures().write(tmp_path / "there"), tmp_path / "link.tfrecord", "--json")
    assert result.exit_code == 1
    assert "AB107" in {one["code"] for one in json.loads(result.stdout)["findings"]}


def test_doctor_ends_with_2_on_a_label_that_no_record_has(tmp_path):
    result = run("doctor", *pictures().write(tmp_path), "--label", "labl", "--json")
    assert result.exit_code == 2
    assert "there are image, label, x" in result.stderr
    assert "no feature `labl`" in json.loads(result.stdout)["error"]


def test_doctor_writes_the_page_and_tells_programs_everything(tmp_path):
    paths = pictures().write(tmp_path)
    result = run("doctor", *paths, "--batch-size", 5000, "--html", tmp_path / "page.html", "--json")
    assert [one["code"] for one in json.loads(result.stdout)["findings"]] == ["AB402"]
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_doctor_looks_at_a_model_too(tmp_path):
    paths = pictures(count=601).write(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    named = f"{tmp_path}/model.py:build"
    result = run("doctor", *paths, "--model", named, "--batch-size", 100, "--json")
    codes = {one["code"]: one["severity"] for one in json.loads(result.stdout)["findings"]}
    errors = dict.fromkeys(("AB207", "AB503", "AB505"), "error")
    assert codes == {**errors, "AB403": "warning", "AB502": "note"}


@pytest.mark.parametrize("function", ["pair", "build"])
def test_doctor_tries_the_model_under_the_memory_there_is(tmp_path, function):
    paths = pictures().write(tmp_path)
    (tmp_path / "model.py").write_text(PAIR.replace("{paths!r}", repr(paths)))
    asked = ["--model", f"{tmp_path}/model.py:{function}", "--batch-size", 300, "--json"]
    found = json.loads(run("doctor", *paths, *asked, "--memory", "8GiB").stdout)
    assert found["plan"]["batch_size"] == 300
    found = json.loads(run("doctor", *paths, *asked, "--memory", "1MiB").stdout)
    assert ("AB408", "error") in {(one["code"], one["severity"]) for one in found["findings"]}


def test_doctor_refuses_a_stream_of_other_files_than_were_named(tmp_path):
    paths = pictures().write(tmp_path)
    (tmp_path / "model.py").write_text(PAIR.replace("{paths!r}", repr(paths[:2])))
    result = run("doctor", *paths, "--model", f"{tmp_path}/model.py:pair")
    assert result.exit_code == 2
    assert "returned a stream of 2 files, and PATHS are 3" in result.stderr


def test_doctor_says_which_function_is_not_there(tmp_path):
    paths = pictures().write(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    result = run("doctor", *paths, "--model", f"{tmp_path}/model.py:other")
    assert result.exit_code == 2
    assert "other" in result.stderr


def test_doctor_compares_with_held_out_shards(tmp_path):
    together = FAULTS["held_out_records_trained_on"].plant(pictures()).write(tmp_path)
    result = run("doctor", *together["train"], "--against", together["test"][0], "--json")
    assert "AB211" in {one["code"] for one in json.loads(result.stdout)["findings"]}
