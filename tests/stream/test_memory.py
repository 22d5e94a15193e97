"""A cap is a cap: measured as the process's own memory, in a process for each case."""

import json
import random
import subprocess
import sys
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from memory_child import PIPELINES

import anybatch as ab

MIB = 1 << 20
SPARE_BYTES = 16 * MIB
CHILD = Path(__file__).with_name("memory_child.py")
LEAST_CAP = 64 * MIB


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory")
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 256, (512, 512, 3), np.uint8)
    ab.write(
        folder / "images.tfrecord", ({"image": picture.tobytes(), "label": n} for n in range(200)), shards=2
    )
    # most are small, a few take a megabyte and more
    sizes = (rng.pareto(0.6, 1000) * 2000).clip(10, 1.5 * MIB).astype(int)
    texts = [{"text": rng.bytes(int(size)), "label": n} for n, size in enumerate(sizes)]
    ab.write(folder / "skewed.tfrecord", texts, shards=3)
    ab.write(folder / "packed.tfrecord", texts, shards=3, compression="GZIP")
    small = ({"x": rng.bytes(700), "label": n} for n in range(100_000))
    ab.write(folder / "small.tfrecord", small, shards=3)
    return folder


def peak_of(data, name, cap_bytes):
    """Return what a pipeline held at most."""
    return told(data, name, cap_bytes)["peak_bytes"]


def told(data, name, cap_bytes):
    child = subprocess.run(
        [sys.executable, CHILD, data, str(cap_bytes), name],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    found = json.loads(child.stdout)
    assert found["seen"] > 0
    return found


@pytest.mark.parametrize("name", PIPELINES)
def test_a_stream_stays_within_its_cap(data, name):
    assert peak_of(data, name, LEAST_CAP) <= LEAST_CAP + SPARE_BYTES


@pytest.mark.soak
@pytest.mark.parametrize("case", range(40))
def test_any_stream_stays_within_any_cap(data, case):
    rng = random.Random(case)
    name = rng.choice(sorted(PIPELINES))
    cap_bytes = int(LEAST_CAP * 2 ** rng.uniform(0, 5))
    assert peak_of(data, name, cap_bytes) <= cap_bytes + SPARE_BYTES


# a cap so small that both caches are files; what writes one differs by more from run to run
@pytest.mark.parametrize(
    ("kind", "cap", "runs"), [("", LEAST_CAP, 1), ("cached ", 2 * MIB, 3)], ids=["", "cached"]
)
def test_fifty_times_the_data_takes_no_more_memory(data, kind, cap, runs):
    once, fifty = (median_of(runs, data, f"{kind}{times}", cap) for times in ("once", "50 times"))
    assert fifty <= 1.02 * once


def median_of(runs, data, name, cap_bytes):
    """Return what the whole process held, all of it."""
    found = [told(data, name, cap_bytes) for _ in range(runs)]
    assert all(run["seen"] == 100_000 for run in found)
    return median(run["process_bytes"] for run in found)


def test_a_batch_larger_than_the_cap_is_refused_before_anything_is_read(data):
    stream = ab.read(f"{data}/images-*.tfrecord", {"image": ab.Raw("uint8", (512, 512, 3))})
    with pytest.raises(ab.AnybatchError, match="limit") as refusal:
        next(iter(stream.batch(200).limit_memory("64MiB")))
    assert "64 MiB" in str(refusal.value)
