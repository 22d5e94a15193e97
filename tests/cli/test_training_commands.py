"""The commands that need a framework."""

import subprocess

import numpy as np
import pytest

import anybatch as ab
from anybatch.cli.demo.ending import Ending, ending_of
from anybatch.handover import Journal
from anybatch.supervise.folder import run_folder
from anybatch.supervise.verdict import Cause

BUILD = """
import keras
import numpy as np
import anybatch as ab

def build():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model

def both():
    return build(), ab.from_arrays((np.ones((8, 4)), np.ones(8))).batch(4)
"""


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    rows = ({"x": rng.random(4, np.float32), "label": n % 3} for n in range(64))
    ab.write(tmp_path / "table.tfrecord", rows)
    (tmp_path / "model.py").write_text(BUILD)
    return tmp_path


def test_plan_prints_how_a_batch_will_be_split(anybatch, table):
    run = anybatch(
        "plan",
        f"{table}/model.py:build",
        f"{table}/table*",
        "--batch-size",
        "16",
        "--memory",
        "8GiB",
        "--json",
    )
    assert run.code == 0, run.err
    plan = run.json
    assert (plan["batch_size"], plan["parts"], plan["exact"]) == (16, 1, True)
    assert 0 < plan["predicted_peak_bytes"] < plan["limit_bytes"] == 8 << 30


def test_plan_says_which_feature_is_missing(anybatch, table):
    run = anybatch("plan", f"{table}/model.py:build", f"{table}/table*", "--label", "class")
    assert run.code == 2
    assert "no feature 'class'; there are" in run.err


def test_plan_refuses_paths_that_it_would_not_read(anybatch, table):
    run = anybatch("plan", f"{table}/model.py:both", f"{table}/missing")
    assert run.code == 2
    assert f"returned a stream, so that `{table}/missing` would not be read" in run.complaint


def test_plan_says_which_feature_a_model_cannot_take(anybatch, table):
    ab.write(table / "raw.tfrecord", [{"image": b"raw", "label": 1}])
    run = anybatch("plan", f"{table}/model.py:build", f"{table}/raw.tfrecord")
    assert run.code == 2
    assert "feature 'image' holds bytes, and a model takes numbers; return (model, stream)" in run.complaint


def pretended(command, cwd, **_):
    """What the commands of the demo print for programs, without a minute of training."""
    (cwd / "history.json").write_text('{"accuracy": [0.5, 0.9]}')
    killed = "with_keras.py" in command
    out = '{"findings": []}' if "doctor" in command else '{"event": "began"}\n{"event": "over"}\n'
    assert "--json" in command[:5]
    return subprocess.CompletedProcess(command, 137 if killed else 0, out)


def test_the_demo_tells_programs_everything_in_one_document(anybatch, tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "run", pretended)
    run = anybatch("demo", "--to", tmp_path, "--json")
    assert run.code == 0
    told = run.json
    assert told["doctor"] == {"findings": []}
    assert (told["keras"]["exit_code"], told["anybatch"]["exit_code"]) == (137, 0)
    assert (told["keras"]["verdict"], told["keras"]["of_memory"]) == (str(Ending(137)), False)
    assert [one["event"] for one in told["anybatch"]["events"]] == ["began", "over"]
    assert told["history"]["accuracy"] == [0.5, 0.9]
    assert "$ anybatch doctor --json" in run.err


def test_the_demo_says_who_ended_plain_keras(tmp_path):
    script = tmp_path / "with_keras.py"
    assert "finished after all" in str(ending_of(script, 0))
    assert not list(tmp_path.iterdir()), "of a script that finished there are no papers"
    journal = Journal(run_folder(str(script), ()))
    for cause, said in [
        (Cause.OVER_LIMIT, "ended by the supervisor, because no memory group can be made here"),
        (Cause.MEMORY_ERROR, "ran out of memory"),
        (Cause.KILLED_FOR_MEMORY, "killed by the kernel"),
    ]:
        journal.add({"event": "ended", "cause": cause, "sentence": "it held 480 MiB of 460 MiB"})
        ending = ending_of(script, 137)
        assert ending.of_memory
        assert said in str(ending)
        assert "it held 480 MiB of 460 MiB" in str(ending)


def test_the_demo_overwrites_nothing(anybatch, tmp_path):
    (tmp_path / "train").mkdir()
    run = anybatch("demo", "--to", str(tmp_path))
    assert run.code == 2
    assert "holds a demo already" in run.err
