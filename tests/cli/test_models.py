"""FILE:FUNCTION: whatever a user's own code does, a command says where, in one line, and ends with 2."""

import json
import signal

import pytest

import anybatch as ab
from anybatch.cli import signals
from anybatch.cli.models import called

COMMANDS = ["plan", "doctor", "sweep"]
every_command = pytest.mark.parametrize("command", COMMANDS)

BROKEN = {
    "raises": (
        "def measure():\n    raise ValueError('bad shape')\n\ndef build():\n    measure()\n",
        "failed at line 2 of `FILE`: ValueError: bad shape",
    ),
    "raises elsewhere": (
        "import json\n\ndef build():\n    json.loads('{')\n",
        "failed at line 4 of `FILE`: JSONDecodeError: Expecting property name",
    ),
    "raises without a word": (
        "def build():\n    assert False\n",
        "failed at line 2 of `FILE`: AssertionError",
    ),
    "raises while it is read": (
        "x = 1\nimport no_such_module\n",
        "failed at line 2 of `FILE`: ModuleNotFound",
    ),
    "is no Python": ("x = 1\ndef build(:\n", "failed at line 2 of `FILE`: SyntaxError"),
    "needs arguments": (
        "def build(width, depth=2): ...\n",
        "needs arguments, (width, depth=2), and",
    ),
    "ends the process": ("import sys\nsys.exit(0)\n", "failed at line 2 of `FILE`: it ended the process"),
    "returns None": ("def build(): ...\n", "returned None where a model should be; return a compiled model"),
    "returns a number": ("def build(): return 3\n", "returned a value of type int where a model should be"),
    "returns too much": ("def build(): return 1, 2, 3\n", "returned a tuple of 3; return a compiled model"),
    "has no function": ("built = 3\n", "has no function `build`"),
}


@pytest.fixture
def arguments(tmp_path):
    """What a command that cannot do it is given."""
    ab.write(tmp_path / "table.tfrecord", [{"x": 0.5, "label": 1.0}] * 4)
    file, shard = tmp_path / "model.py", tmp_path / "table.tfrecord"

    def of(command, text):
        file.write_text(text)
        named = f"{file}:build"
        return ["doctor", shard, "--model", named] if command == "doctor" else [command, named]

    return of


@every_command
@pytest.mark.parametrize("broken", BROKEN)
def test_a_users_code_that_fails_is_one_line_that_says_where(anybatch, arguments, command, broken, tmp_path):
    text, told = BROKEN[broken]
    run = anybatch(*arguments(command, text))
    assert run.code == 2
    assert told.replace("FILE", f"{tmp_path}/model.py") in run.complaint
    assert f"{tmp_path}/model.py" in run.complaint


@every_command
def test_a_users_code_that_fails_is_a_document_too(anybatch, arguments, command):
    run = anybatch(*arguments(command, BROKEN["raises"][0]), "--json")
    assert run.code == 2
    assert "bad shape" in run.json["error"]


def test_a_file_that_cannot_be_imported_by_the_users_names_itself(anybatch, arguments, tmp_path):
    (tmp_path / "beside.py").write_text("def broken(:\n")
    run = anybatch(*arguments("sweep", "import beside\n"))
    assert f"line 1 of `{tmp_path}/beside.py`: SyntaxError" in run.complaint


def test_a_process_that_is_told_to_end_meanwhile_ends(monkeypatch, tmp_path):
    (tmp_path / "model.py").write_text("import os\ndef build(): os.kill(os.getpid(), 15)\n")
    monkeypatch.setattr(signals, "_ignore_more", lambda: None)
    before = signal.signal(signal.SIGTERM, signals._ended)
    try:
        with pytest.raises(SystemExit) as ended:
            called(f"{tmp_path}/model.py:build")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.value.code == 128 + signal.SIGTERM


def test_what_a_users_file_prints_is_no_part_of_the_document(anybatch, arguments):
    build = (
        "print('hello')\nclass Model:\n    fit = None\ndef build():\n    print('again')\n    return Model()\n"
    )
    run = anybatch(*arguments("sweep", build), "--json")
    assert "returned a Model alone" in json.loads(run.out)["error"]
    assert run.err.splitlines()[:2] == ["hello", "again"]


def test_what_nobody_thought_of_is_one_line_too(anybatch, arguments, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("never thought of\nthat")

    monkeypatch.setattr("anybatch.doctor.diagnose", broken)
    run = anybatch("doctor", arguments("doctor", "")[1])
    assert run.code == 2
    assert "RuntimeError: never thought of that (line " in run.complaint


@pytest.mark.parametrize("command", ["doctor", "sweep"])
@pytest.mark.parametrize("html", ["nowhere/page.html", "model.py/page.html", "."])
def test_a_page_that_cannot_be_written_is_told_before_the_work(anybatch, arguments, command, html, tmp_path):
    run = anybatch(*arguments(command, BROKEN["raises"][0]), "--html", tmp_path / html)
    assert run.code == 2
    assert "bad shape" not in run.complaint
    assert f"`{(tmp_path / html).parent if 'page' in html else tmp_path}`" in run.complaint
