"""Decoding images keeps to the limit, however large they are on their way."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests.records.images import photo, shard_of

MEBIBYTE = 1 << 20

# in a process of its own, so that nothing else allocates
PEAK = """
import json, re, sys
from pathlib import Path
import anybatch as ab

def anonymous_bytes():
    return 1024 * int(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

path, limit = sys.argv[1], int(sys.argv[2])
stream = ab.read(path, {"image": ab.Image(64, 64)}).batch(8).limit_memory(limit)
next(iter(stream.take(0)), None)
idle = peak = anonymous_bytes()
rows = 0
for batch in stream:
    rows += len(batch["image"])
    peak = max(peak, anonymous_bytes())
print(json.dumps([rows, peak - idle]))
"""


def peak_growth(path, limit_bytes):
    ran = subprocess.run(
        [sys.executable, "-c", PEAK, path, str(limit_bytes)], capture_output=True, check=True
    )
    return json.loads(ran.stdout)


@pytest.mark.parametrize("kind", ["png", "progressive"])
def test_large_images_stay_within_the_limit(tmp_path, kind):
    pixels = photo(1200, 1000)
    file = tf.io.encode_png(pixels) if kind == "png" else tf.io.encode_jpeg(pixels, progressive=True)
    path = shard_of(tmp_path / "large.tfrecord", [file.numpy()] * 24)
    rows, growth = peak_growth(path, 64 * MEBIBYTE)
    assert rows == 24
    assert growth <= (64 + 16) * MEBIBYTE


def test_small_images_take_little(tmp_path):
    path = shard_of(
        tmp_path / "small.tfrecord", [tf.io.encode_jpeg(np.zeros((64, 64, 3), np.uint8)).numpy()] * 64
    )
    rows, growth = peak_growth(path, 16 * MEBIBYTE)
    assert rows == 64
    assert growth <= 32 * MEBIBYTE
