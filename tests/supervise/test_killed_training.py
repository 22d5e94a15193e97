import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.supervise.killed_training import train
from tests.supervise.supervised import Told, command, events_of, needs_group

SCRIPT = Path(__file__).with_name("killed_training.py")


def trained(file):
    with np.load(file) as loaded:
        return int(loaded["parts"]), [loaded[name] for name in loaded.files if name != "parts"]


@pytest.mark.long
@needs_group
def test_a_training_that_the_kernel_kills_is_finished_in_smaller_parts(tmp_path):
    script = tmp_path / SCRIPT.name
    script.write_text(SCRIPT.read_text())
    train(tmp_path / "free.npz")
    done = subprocess.run(
        [*command("--memory", "400MiB"), script, tmp_path / "killed.npz"],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    told = Told(done.returncode, events_of(done.stdout), done.stderr)
    assert told.code == 0, told
    assert told.causes()[0] == "killed for memory"
    assert told.causes()[-1] == "finished"
    (parts, weights), (smaller, again) = trained(tmp_path / "free.npz"), trained(tmp_path / "killed.npz")
    assert (parts, smaller > 1) == (1, True)
    for one, other in zip(weights, again, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)
