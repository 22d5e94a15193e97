"""What training holds does not grow with what it trains on."""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import numpy as np
import pytest

import anybatch as ab
from anybatch.units import size

RECORDS, TIMES, RUNS = 640, (1, 10, 50), 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("growing")
    random = np.random.default_rng(0)
    records = ({"image": random.bytes(48 * 48 * 3), "label": n % 10} for n in range(RECORDS * TIMES[-1]))
    ab.write(folder / "all.tfrecord", records, shards=4)
    return folder


def peak_of(folder: Path, times: int) -> int:
    """Return what training on so many times the data held at most, for as many updates in any case."""
    epochs = TIMES[-1] // times
    done = subprocess.run(
        [sys.executable, "-m", "tests.train.growing", folder, str(RECORDS * times), str(epochs)],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert told["epochs"] == epochs
    return int(told["peak_bytes"])


@pytest.mark.soak
def test_training_on_fifty_times_the_data_takes_no_more_memory(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {times: [peak_of(folder, times) for _ in range(RUNS)] for times in TIMES}
    with capsys.disabled():
        for times, peaks in found.items():
            print(f"{times:>3} times the data: {', '.join(size(peak) for peak in peaks)}")
    once = median(found[1])
    assert all(median(peaks) <= 1.02 * once for peaks in found.values())
