"""Memory really runs out, at random moments; every case that raises is survived."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from anybatch.memory import predictable_environment
from tests.train.kept_arrays import largest_differences

CASES = 50
MEGABYTES = 48
ROUNDED = 1e-4
"""Of the largest number of an array: parts of other sizes are added up in another order."""


def starved(seed: int, megabytes: int, onednn: str, file: Path) -> tuple[int, Any]:
    """Return the exit code and, if it is 0, what the process printed; its weights are in the file then."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.train.starved", str(seed), str(megabytes), str(file)],
        # freed memory goes back at once, or a limit would meet a heap that has all it needs already
        env={
            **os.environ,
            **predictable_environment(),
            "TF_ENABLE_ONEDNN_OPTS": onednn,
            "TF_CPP_MIN_LOG_LEVEL": "3",
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode <= 0, done.stderr[-3000:]
    return done.returncode, json.loads(done.stdout) if done.returncode == 0 else None


@pytest.mark.soak
@pytest.mark.parametrize("onednn", ["0", "1"])
def test_training_that_ran_out_of_memory_ends_with_the_same_weights(onednn: str, tmp_path: Path) -> None:
    whole, weights = tmp_path / "undisturbed", tmp_path / "starved"
    _, undisturbed = starved(0, 0, onednn, whole)
    counts, furthest = Counter[str](), 0.0
    for seed in range(CASES):
        code, found = starved(seed, MEGABYTES, onednn, weights)
        how = ending(code, found)
        counts[how] += 1
        if how in {"went on", "had enough"}:
            furthest = max(furthest, *largest_differences(weights, whole))
            assert furthest < ROUNDED, seed
            assert found["loss"] == pytest.approx(undisturbed["loss"], rel=1e-4)
    print(f"oneDNN {onednn}, {CASES} cases: {dict(counts)}; weights differ by {furthest:.1e} at most")
    if onednn == "1":
        # products may fail in silence: nobody goes on with them
        assert counts["cut"] > CASES // 8
        return
    assert counts["went on"] > CASES // 8
    assert counts["stopped"] + counts["cut"] <= CASES // 10
    # it ran out in every case: all others went on, or were ended where no code inside can do anything
    assert not counts["had enough"]


def ending(code: int, found: Any) -> str:
    """Return how a case ended, in a word."""
    if code < 0:
        # the C++ runtime ended the process: no code inside can catch that, a supervisor restarts it
        return "signal"
    if "stopped" in found:
        # there was really nothing left, not even for one sample, and it was said
        return "stopped"
    if "cut" in found:
        # an update had begun and could not end, or products may be wrong; and it was said
        return "cut"
    return "went on" if found["events"] else "had enough"
