"""Folders in memory for caches, and a stream with every kind of column."""

import os
import shutil

import pytest

import anybatch as ab
from tests.stream.caches.kept import KINDS, SCRATCH, record_of_all_kinds


@pytest.fixture
def tmp_path():
    """A folder in memory: every cache is synced to the disk, which would take longer than all the rest."""
    folder = SCRATCH / os.urandom(6).hex()
    folder.mkdir(parents=True)
    return folder


@pytest.fixture(autouse=True)
def own_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))


@pytest.fixture
def of_all_kinds(tmp_path):
    ab.write(tmp_path / "kinds.tfrecord", map(record_of_all_kinds, range(57)), shards=3)
    return ab.read(str(tmp_path / "kinds-*"), KINDS)


@pytest.fixture(scope="module", autouse=True)
def scratch():
    yield
    shutil.rmtree(SCRATCH, ignore_errors=True)
