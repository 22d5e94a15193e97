"""`anybatch doctor` and `anybatch lint`: exit codes, words for people, JSON for programs."""

import json
import re
from contextlib import closing, contextmanager, nullcontext

import pytest
from typer.testing import CliRunner

from anybatch.cli import app
from anybatch.scale import LocalEngine
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


def test_doctor_shows_the_plan_without_being_told_a_memory(tmp_path):
    paths = pictures().write(tmp_path)
    (tmp_path / "model.py").write_text(PAIR.replace("{paths!r}", repr(paths)))
    shown = run("doctor", *paths, "--model", f"{tmp_path}/model.py:pair", "--batch-size", 300).stdout
    assert re.search(r"^batch +300 ", shown, re.MULTILINE)
    assert re.search(r"^limit +\d", shown, re.MULTILINE)
    assert "what uses it" not in shown


def test_doctor_says_that_a_model_was_not_tried(tmp_path):
    paths = pictures().write(tmp_path)
    (tmp_path / "model.py").write_text(MODEL.replace("Input((4,))", "Input((7,))"))
    result = run("doctor", *paths, "--model", f"{tmp_path}/model.py:build")
    assert "the model was not tried: it is not clear which features it takes" in result.stdout


def test_doctor_takes_a_prefetch(tmp_path):
    paths = pictures().write(tmp_path)
    asked = ["--batch-size", 50, "--memory", "20000", "--prefetch", 10, "--json"]
    assert "AB409" in {one["code"] for one in json.loads(run("doctor", *paths, *asked).stdout)["findings"]}


class Interrupted(LocalEngine):
    """Stops after the first shard, as Ctrl-C does."""

    def run(self, work, tasks):
        with closing(super().run(work, tasks)) as running:
            yield next(running)
            raise KeyboardInterrupt


@pytest.mark.parametrize("first", [[], ["--all"]], ids=["sampled", "all"])
def test_a_full_pass_takes_nothing_from_the_journal_of_a_sampled_one(tmp_path, monkeypatch, first):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("anybatch.doctor.measure.files.WHOLE_BYTES", 0)
    monkeypatch.setattr("anybatch.cli.doctor.named_engine", lambda *_: nullcontext(Interrupted()))
    paths = pictures(count=6_000).write(tmp_path / "data")
    CliRunner().invoke(app, ["doctor", *paths, *first])
    started = []

    class Counted(LocalEngine):
        def run(self, work, tasks):
            started.append(len(tasks))
            return super().run(work, tasks)

    monkeypatch.setattr("anybatch.cli.doctor.named_engine", lambda *_: nullcontext(Counted()))
    found = json.loads(run("doctor", *paths, "--all", "--json").stdout)
    assert started == [2 if first else 3]
    assert found["everything"]
    assert "AB109" not in {one["code"] for one in found["findings"]}


@pytest.mark.parametrize("engine", [[], ["--engine", "local"]], ids=["threads", "engine"])
def test_doctor_tells_how_far_it_is(tmp_path, monkeypatch, engine):
    told = []

    @contextmanager
    def bar(what, total_bytes, *, shown):
        assert shown
        yield told.append
        assert sum(told) == total_bytes

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("anybatch.cli.doctor.progress_bar", bar)
    together = FAULTS["held_out_records_trained_on"].plant(pictures()).write(tmp_path)
    run("doctor", *together["train"], "--against", together["test"][0], *engine)
    assert told


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
