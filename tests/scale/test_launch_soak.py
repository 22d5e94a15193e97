"""The same laws, many times over and in worse conditions."""

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from anybatch.memory import tree_of
from tests.scale.launched import (
    alone,
    hungry_in,
    largest_difference,
    launched,
    results,
    run,
    start_launch,
    updated,
)
from tests.supervise.supervised import needs_group

pytestmark = pytest.mark.soak

EXACT = 1e-9
EPOCHS = 60
KILLS = int(os.environ.get("ANYBATCH_KILLS", "50"))
NAMED = "somebody killed it (signal 9)"


def test_fifty_kills_at_random_moments_change_nothing(tmp_path):
    """From outside: while workers start, look for each other, exchange sums, write a state or end."""
    training = ["--kinds", "table", "counts", "--epochs", EPOCHS]
    assert alone(tmp_path, tmp_path / "one.npz", *training).code == 0
    arguments = [tmp_path / "killed.npz", *training, "--slow", "0.2,0"]
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        launch = start_launch(tmp_path, 2, *arguments, options=["--retries", 3 * KILLS], out=out, err=err)
        while_starting, while_training = kills_of(launch, tmp_path / "out", tmp_path / "err")
        assert launch.wait(timeout=600) == 0, (tmp_path / "err").read_text()[-3000:]
    print(f"{while_starting} kills before the first update of a life, {while_training} behind it")
    assert min(while_starting, while_training) >= KILLS // 10
    found = results(tmp_path / "killed.npz")
    assert (found["counts/0"] == -EPOCHS).all()
    assert largest_difference(found, results(tmp_path / "one.npz")) < EXACT


def kills_of(launch, out, err):
    """Kill until enough were named; return how many came before the first update of a life, and behind."""
    draw, moments = random.Random(5), [0, 0]
    begun, seen = time.monotonic(), 0
    while not updates_in(out):
        assert launch.poll() is None, err.read_text()
        time.sleep(0.1)
    a_start = time.monotonic() - begun
    while err.read_text().count(NAMED) < KILLS:
        time.sleep(draw.uniform(0, 1.5 * a_start))
        made = updates_in(out)
        moments[made > seen] += kill_one(launch, draw)
        seen = made
        assert launch.poll() is None, err.read_text()[-3000:]
    return moments


def updates_in(out):
    return out.read_text().count("update ")


def kill_one(launch, draw):
    """Kill one of the processes that run the script, or are about to; return whether there was one."""
    scripts = [process for process in tree_of(launch.pid) if b"workers_boot.py" in command_of(process)]
    if scripts:
        with suppress(ProcessLookupError):
            os.kill(draw.choice(scripts), signal.SIGKILL)
    return bool(scripts)


def command_of(process):
    """Return what a process was started with; nothing if it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


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
    arguments = [tmp_path / "told.npz", "--kinds", "table", "--epochs", 4, "--slow", 0.5]
    told = start_launch(tmp_path, 2, *arguments)
    updated(told, 3)
    told.terminate()
    _, err = told.communicate(timeout=60)
    assert told.returncode == 128 + 15
    assert "the same command continues" in err
