# ruff: noqa: E501, PTH123
"""Equal values and functions have equal hashes, and others have not."""

import functools
import importlib
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anybatch as ab
from anybatch.stream.hashes import Hasher, Unstable
from anybatch.stream.hashes import _hash_of_file as hashes_of_files


def digest(value: Any) -> bytes:
    return Hasher().digest(value)


def test_equal_values_have_equal_hashes_and_others_have_not():
    values = [
        0, 0.0, -0.0, False, None, "0", b"0", (), [], {}, set(), (0,), [0], {0}, frozenset({1}), {"a": 1}, {"a": 2},
        {"a": 1, "b": 2}, {"b": 2, "a": 1}, np.zeros(2), np.zeros(3), np.zeros(2, "f4"), np.zeros((1, 2)),
        np.float32(0), np.dtype("f4"), range(3), slice(3), 1j, ("ab", "c"), ("a", "bc"), len, str.upper, "x".join,
        "y".join, np.abs, functools.partial(int, base=2), functools.partial(int, base=3), Path("a"), float("nan"),
        lambda: 1, lambda: 2, lambda x=1: x, lambda x=2: x, ab.Numbers("float32"), ab.Numbers("float32", (2,)),
    ]  # fmt: skip
    digests = [digest(value) for value in values]
    assert len(set(digests)) == len(values)
    assert [digest(value) for value in values] == digests


def test_a_function_keeps_its_hash_when_it_is_called():
    def function(values):
        return sum(value * 2 for value in values if isinstance(value, int))

    before = digest(function)
    for _ in range(2000):
        function([1, 2, 3])
    assert digest(function) == before


def test_functions_that_hold_themselves_have_a_hash():
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    held: list[Any] = []
    held.append(held)
    assert digest(even) == digest(even)
    assert digest(even) != digest(odd)
    assert digest(held) == digest(held)


def test_decorated_functions_are_looked_into():
    def decorated(inner):
        @functools.wraps(inner)
        def outer(*args):
            return inner(*args)

        return functools.lru_cache(outer)

    assert digest(decorated(lambda x: x + 1)) != digest(decorated(lambda x: x + 2))


@pytest.mark.parametrize("value", [np.random.default_rng(0), open(os.devnull), (n for n in ())])  # noqa: SIM115
def test_what_has_a_state_of_its_own_has_no_hash(value):
    with pytest.raises(Unstable, match=type(value).__qualname__):
        digest(lambda: value)


def test_a_library_that_tells_no_version_is_known_by_its_file(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    hashes = []
    for factor in (2, 3, 3):
        (folder / "untold_library.py").write_text(f"def prepare(record):\n    return record * {factor}\n")
        monkeypatch.delitem(sys.modules, "untold_library", raising=False)
        importlib.invalidate_caches()
        hashes_of_files.cache_clear()
        hashes.append(digest(importlib.import_module("untold_library").prepare))
    assert hashes[0] != hashes[1] == hashes[2]
