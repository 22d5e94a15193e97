"""States behind every update."""

import pytest

from anybatch.train.checkpoint import Checkpoint


@pytest.fixture
def saving_always(monkeypatch):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    monkeypatch.setattr(Checkpoint, "save_later", Checkpoint.save_now)
