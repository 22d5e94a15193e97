"""The same laws, many times over and in worse conditions."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest

from tests.scale.launched import (
    alone,
    hungry_in,
    largest_difference,
    launched,
    results,
    run,
    script_in,
    updated,
)
from tests.supervise.supervised import needs_group

pytestmark = pytest.mark.soak

EXACT = 1e-9
EPOCHS, UPDATES_PER_EPOCH = 60, 5
KILLS = int(os.environ.get("ANYBATCH_KILLS", "50"))


def test_fifty_kills_at_random_updates_change_nothing(tmp_path):
    training = ["--kinds", "table", "--epochs", EPOCHS]
    assert alone(tmp_path, tmp_path / "one.npz", *training).code == 0
    draw = random.Random(5)
    moments = draw.sample(range(1, EPOCHS * UPDATES_PER_EPOCH), KILLS)
    deaths = [f"table:{draw.randrange(2)}@{update}" for update in moments]
    done = launched(
        tmp_path,
        2,
        tmp_path / "killed.npz",
        *training,
        "--die",
        *deaths,
        options=["--retries", KILLS],
        timeout=3600,
    )
    assert done.code == 0, done.err[-3000:]
    assert done.err.count("somebody killed it (signal 9)") == KILLS
    assert largest_difference(results(tmp_path / "killed.npz"), results(tmp_path / "one.npz")) < EXACT


def weights_in(file):
    return {name: value for name, value in results(file).items() if name[-1].isdigit()}


@pytest.mark.parametrize("workers", [2, 3])
def test_single_precision_differs_by_rounding_alone(workers, tmp_path):
    """What several workers change is no more than three times what another order within batches changes."""
    single = ["--kinds", "table", "sentences", "--floatx", "float32"]
    assert alone(tmp_path, tmp_path / "one.npz", *single).code == 0
    assert alone(tmp_path, tmp_path / "other.npz", *single, "--reversed").code == 0
    assert launched(tmp_path, workers, tmp_path / "several.npz", *single).code == 0
    one, other, several = (weights_in(tmp_path / f"{name}.npz") for name in ("one", "other", "several"))
    assert largest_difference(several, one) <= 3 * largest_difference(other, one)


@needs_group
def test_a_worker_that_the_kernel_kills_for_memory_goes_on_in_smaller_parts(tmp_path):
    script = hungry_in(tmp_path)
    assert run([script, tmp_path / "free.npz"]).code == 0
    done = run(
        ["-m", "anybatch", "launch", "--workers", 2, "--memory", "550MiB", script, tmp_path / "killed.npz"],
        timeout=600,
    )
    assert done.code == 0, done.err[-3000:]
    assert "worker 0: the kernel killed it for memory" in done.err
    assert "worker 1: the kernel" not in done.err
    assert "parts of at most" in done.err
    for one, other in zip(
        results(tmp_path / "free.npz").values(), results(tmp_path / "killed.npz").values(), strict=True
    ):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)


def test_whoever_launches_can_be_told_to_end(tmp_path):
    command = [sys.executable, "-m", "anybatch", "launch", "--workers", "2", str(script_in(tmp_path))]
    arguments = [str(tmp_path / "told.npz"), "--kinds", "table", "--epochs", "4"]
    told = subprocess.Popen(
        [*command, *arguments, "--slow", "0.5"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    updated(told, 3)
    told.terminate()
    _, err = told.communicate(timeout=60)
    assert told.returncode == 128 + 15
    assert "the same command continues" in err
