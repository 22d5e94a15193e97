import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.supervise import killed_late
from tests.supervise.killed_training import train
from tests.supervise.supervised import Told, command, events_of, needs_group

HERE = Path(__file__).parent


def trained(file):
    with np.load(file) as loaded:
        return int(loaded["parts"]), [loaded[name] for name in loaded.files if name != "parts"]


def supervised(folder, name, memory, *arguments):
    """Run a script beside this file under a limit, with no plan from another time."""
    script = folder / name
    script.write_text((HERE / name).read_text())
    done = subprocess.run(
        [*command("--memory", memory), script, folder / "killed.npz", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
        env=os.environ | {"XDG_CACHE_HOME": str(folder / "cache")},
    )
    return Told(done.returncode, events_of(done.stdout), done.stderr)


@pytest.mark.long
@needs_group
def test_a_training_that_the_kernel_kills_is_finished_in_smaller_parts(tmp_path):
    train(tmp_path / "free.npz")
    told = supervised(tmp_path, "killed_training.py", "480MiB")
    assert told.code == 0, told
    assert told.causes()[0] == "killed for memory"
    assert told.causes()[-1] == "finished"
    (parts, weights), (smaller, again) = trained(tmp_path / "free.npz"), trained(tmp_path / "killed.npz")
    assert (parts, smaller > 1) == (1, True)
    for one, other in zip(weights, again, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)


@pytest.mark.long
@needs_group
def test_a_kill_while_sizes_are_tried_leads_to_smaller_ones(tmp_path):
    told = supervised(tmp_path, "killed_planning.py", "800MiB")
    assert told.code == 0, told
    assert told.causes() == ["killed for memory", "finished"]
    assert told.parts()[1] is not None
    parts, _ = trained(tmp_path / "killed.npz")
    assert parts >= 4


@pytest.mark.long
@needs_group
@pytest.mark.parametrize("kind", [pytest.param("model", marks=pytest.mark.soak), "pipeline"])
def test_a_kill_after_many_updates_changes_nothing_whoever_has_grown(tmp_path, kind):
    killed_late.train(tmp_path / "free.npz", kind)
    told = supervised(tmp_path, "killed_late.py", "500MiB", kind)
    assert told.code == 0, told
    assert told.causes() == ["killed for memory", "finished"]
    weights, again = (trained(tmp_path / name)[1] for name in ("free.npz", "killed.npz"))
    for one, other in zip(weights, again, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)
