"""Plans for memory that is not the host's: TensorFlow's GPU allocator, run on the CPU."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import anybatch as ab
from tests.train_plan.device_child import WIDTH, model

LIMIT = 92 << 20


def told(tmp_path, *arguments):
    cap = {"TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "512"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.train_plan.device_child", *arguments],
        env={**os.environ, **cap, "XDG_CACHE_HOME": str(tmp_path), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.long
def test_a_batch_is_split_to_fit_into_a_device(tmp_path):
    found = told(tmp_path, "92MiB")
    assert found["parts"] == found["parts of fit"] > 1
    assert found["limit"] == LIMIT
    assert any("CPU:0 decides" in note for note in found["notes"])
    assert found["events"] == []
    assert found["peak"] <= LIMIT
    assert 0.9 * found["peak"] <= found["predicted"] <= LIMIT


def test_without_an_accelerator_its_limit_is_said_to_change_nothing():
    x, y = np.ones((32, WIDTH), "float32"), np.ones((32, 1), "float32")
    found = ab.plan(model(), (x, y), batch_size=32, device_memory="92MiB")
    assert found.parts == 1
    assert any("no accelerator" in note for note in found.notes)
