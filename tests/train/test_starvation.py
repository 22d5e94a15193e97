"""Memory really runs out, at random moments; every case that raises is survived."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from anybatch.memory import predictable_environment

CASES = 50
MEGABYTES = 48


def starved(seed: int, megabytes: int, onednn: str) -> tuple[int, Any]:
    """Return the exit code and, if it is 0, what the process printed."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.train.starved", str(seed), str(megabytes)],
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
def test_training_that_ran_out_of_memory_ends_with_the_same_weights(onednn: str) -> None:
    _, undisturbed = starved(0, 0, onednn)
    signals, stopped, cut, exhausted = 0, 0, 0, 0
    for seed in range(CASES):
        code, found = starved(seed, MEGABYTES, onednn)
        if code < 0:
            # the C++ runtime ended the process: no code inside can catch that, a supervisor restarts it
            signals += 1
            continue
        if "stopped" in found:
            # there was really nothing left, not even for one sample, and it was said
            stopped += 1
            continue
        if "cut" in found:
            # an update had begun and could not end, or products may be wrong; and it was said
            cut += 1
            continue
        exhausted += bool(found["events"])
        assert found["weights"] == pytest.approx(undisturbed["weights"], rel=1e-4)
        assert found["loss"] == pytest.approx(undisturbed["loss"], rel=1e-4)
    print(f"{CASES} cases: {exhausted} ran out and went on, {stopped} stopped, {cut} cut, {signals} signals")
    # with oneDNN products may fail in silence: nobody goes on with them
    assert (exhausted if onednn == "0" else cut) > CASES // 8
