"""What the tests of caches share."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import anybatch as ab
from tests.stream import pipelines

KINDS = {
    "dense": ab.Numbers("float32", (3,)),
    "scalar": ab.Numbers("int64"),
    "flag": ab.Numbers("bool"),
    "raw": ab.Raw("uint16", (2, 2)),
    "bytes": ab.Bytes(),
    "pair": ab.Bytes(shape=(2,)),
    "lists": ab.Ragged("int64"),
    "words": ab.Ragged(bytes),
}


SCRATCH = Path("/dev/shm" if Path("/dev/shm").is_dir() else "/tmp") / f"anybatch-test-cache-{os.getpid()}"


def record_of_all_kinds(number):
    return {
        "dense": np.array([number, 0.5, -number], np.float32),
        "scalar": number,
        "flag": number % 2 == 0,
        "raw": np.arange(number, number + 4, dtype="<u2").tobytes(),
        "bytes": b"%d" % number * (number % 4),
        "pair": [b"\0" * (number % 3), b"p%d" % number],
        "lists": list(range(number % 5)),
        "words": [b"w" * at for at in range(number % 4)],
    }


def places(tmp_path):
    """Where a cache may lie: in memory, and on disk."""
    return [None, tmp_path / "cache"]


@st.composite
def contents(draw):
    """Anything whose order does not depend on the epoch."""
    stream = draw(pipelines.sources())
    for change in draw(st.lists(st.sampled_from(pipelines.CHANGES[:7]), max_size=3)):
        stream = change(draw, stream)
    return stream


@st.composite
def orders(draw):
    """Changes of order as a function of a stream."""
    names = draw(st.lists(st.sampled_from(["shuffle", "window", "take", "skip", "shard"]), max_size=3))
    how = [(name, draw(st.integers(0, 20)), draw(st.integers(1, 3))) for name in names]

    def reorder(stream):
        for name, number, count in how:
            match name:
                case "shuffle":
                    stream = stream.shuffle(seed=number)
                case "window":
                    stream = stream.shuffle(seed=number, window=200)
                case "take":
                    stream = stream.take(number)
                case "skip":
                    stream = stream.skip(number // 4)
                case "shard":
                    stream = stream.shard(count, number % count)
        return stream

    return reorder


on_disk = st.booleans()


def somewhere(disk):
    return SCRATCH / os.urandom(6).hex() if disk else None


def folders_in(root):
    """Every attempt that a cache's folder holds, whole or not."""
    return sorted(str(path) for path in Path(root).glob("*/*/") if path.is_dir())


def generation_in(root):
    """Which attempt the only cache in a folder is made of."""
    (manifest,) = Path(root).glob("*/manifest.json")
    content = json.loads(manifest.read_bytes().partition(b"\n")[2])
    assert [str(manifest.parent / content["generation"])] == folders_in(root)
    return content["generation"]


def script_in(folder, text):
    path = Path(folder) / "script.py"
    path.write_text(textwrap.dedent(text))
    return path


def run_script(folder, text):
    done = subprocess.run(
        [sys.executable, script_in(folder, text)],
        cwd=folder,
        text=True,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
