# ruff: noqa: E501
"""A cache is used again when nothing that makes it has changed, and made anew otherwise."""

import json
import logging
import os

import numpy as np
import pytest

import anybatch as ab
from tests.stream import pipelines
from tests.stream.caches.kept import folders_in, generation_in, run_script
from tests.stream.stream_laws import (
    elements,
    numbers,
)

SCRIPT = """
    import numpy as np, anybatch as ab
    FACTOR = 2
    TABLE = {"a": [1, 2], "b": (3.5, None)}
    class Scale:
        by = 3
        def __init__(self, extra): self.extra = extra
        def __call__(self, value): return value * self.by + self.extra
    def helper(value):
        return value + 1
    def make(closed_over, default=7):
        scale = Scale(4)
        def function(record, own=default):
            return {"n": helper(record["n"]) * FACTOR + closed_over + own + len(TABLE) + scale(0) + np.abs(-1)}
        return function
    stream = ab.from_arrays({"n": np.arange(50)}).map(make(5)).cache("cache").shuffle(seed=1)
    print(sum(int(record["n"]) for record in stream))
    """


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        ("value + 1", "value + 2", False),
        ("FACTOR = 2", "FACTOR = 3", False),
        ("make(5)", "make(6)", False),
        ("default=7", "default=8", False),
        ("[1, 2]", "[1, 3]", False),
        ("by = 3", "by = 4", False),
        ("self.by + self.extra", "self.by - self.extra", False),
        ("Scale(4)", "Scale(5)", False),
        ("np.abs(-1)", "np.sign(-1)", False),
        ("np.arange(50)", "np.arange(1, 51)", False),
        ('{"n": helper', '{"m": helper', False),
        ("print(", "# a comment, and more lines\n    print(", True),
        ("def helper(value):", "\n\n    def helper(value):", True),
        ("seed=1", "seed=2", True),
        (".shuffle(seed=1)", ".take(30).shuffle(seed=1)", True),
        ("import numpy as np,", "import os, numpy as np,", True),
    ],
)
def test_a_cache_is_used_again_when_nothing_that_makes_it_has_changed(tmp_path, old, new, again):
    run_script(tmp_path, SCRIPT)
    before = generation_in(tmp_path / "cache")
    assert old in SCRIPT
    changed = SCRIPT.replace(old, new).replace('record["n"]) for', "list(record.values())[0]) for")
    run_script(tmp_path, changed)
    assert (generation_in(tmp_path / "cache") == before) == again


def test_a_changed_shard_makes_a_cache_anew(tmp_path):
    path = tmp_path / "a.tfrecord"
    ab.write(path, map(pipelines.record_of, range(10)))

    def kept():
        return ab.read(path, pipelines.FEATURES).cache(tmp_path / "cache")

    list(kept())
    before = generation_in(tmp_path / "cache")
    list(kept())
    assert generation_in(tmp_path / "cache") == before
    os.utime(path, ns=(1, 1))
    list(kept())
    after = generation_in(tmp_path / "cache")
    assert after != before
    ab.write(path, map(pipelines.record_of, range(20, 30)), overwrite=True)
    assert numbers(kept()) == list(range(20, 30))
    assert generation_in(tmp_path / "cache") != after


def test_other_features_of_the_same_files_are_another_cache(tmp_path):
    for names in (["n"], ["n", "x"]):
        features = {name: pipelines.FEATURES[name] for name in names}
        for _ in range(2):
            assert list(next(iter(ab.read(pipelines.shards(), features).cache(tmp_path)))) == names


def test_limits_and_prefetching_do_not_make_a_cache_anew(tmp_path):
    list(pipelines.from_files().cache(tmp_path))
    before = generation_in(tmp_path)
    other = pipelines.from_files().prefetch(3).limit_memory("100MiB")
    list(other.cache(tmp_path))
    names = {path.parent.name for path in tmp_path.glob("*/manifest.json")}
    assert before in [path.name for path in tmp_path.glob("*/*")]
    assert len(names) == 2  # another folder by its name, but the same fingerprint
    fingerprints = {
        json.loads(p.read_bytes().partition(b"\n")[2])["fingerprint"] for p in tmp_path.glob("*/*.json")
    }
    assert len(fingerprints) == 1


def test_what_cannot_be_told_apart_is_not_used_again_and_that_is_said(tmp_path, caplog):
    rng = np.random.default_rng(0)

    def kept():
        return ab.from_arrays(np.arange(50)).map(lambda n: n + rng.integers(2)).cache(tmp_path / "cache")

    with caplog.at_level(logging.WARNING, "anybatch"):
        stream = kept()
        assert elements(stream) == elements(stream)
    assert "`rng`" in caplog.text
    assert "numpy.random" in caplog.text
    assert folders_in(tmp_path / "cache") == []


def test_inputs_that_change_while_a_cache_is_filled_are_noticed(tmp_path):
    path = tmp_path / "a.tfrecord"
    ab.write(path, map(pipelines.record_of, range(10)))
    iterator = iter(ab.read(path, pipelines.FEATURES).cache(tmp_path / "cache"))
    next(iterator)
    os.utime(path, ns=(1, 1))
    list(iterator)
    assert folders_in(tmp_path / "cache") == []
