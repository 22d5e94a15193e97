"""Disks that fail, and folders that are damaged."""

import errno

import numpy as np

from anybatch.handover import Disk
from anybatch.train.checkpoint import Checkpoint
from anybatch.train.checkpoint_files import State

IDENTITY = {"model": "3 variables", "batch size": "64"}


class FailingAt(Disk):
    """A disk whose operation number `at` fails before it has done anything, and whatever comes after too."""

    def __init__(self, at, number=errno.EIO):
        self.at = at
        self.number = number
        self.done = 0

    def _count(self):
        self.done += 1
        if 0 < self.at <= self.done:
            raise OSError(self.number, "the disk failed")

    def create(self, file):
        self._count()
        return super().create(file)

    def write(self, handle, content):
        self._count()
        super().write(handle, content)

    def sync(self, handle):
        self._count()
        super().sync(handle)

    def rename(self, old, new):
        self._count()
        super().rename(old, new)

    def sync_folder(self, folder):
        self._count()
        super().sync_folder(folder)

    def remove(self, file):
        self._count()
        super().remove(file)


def state(step, size=5):
    arrays = {
        "model/kernel": np.full((size, 3), step, np.float32),
        "model/empty": np.zeros((0, 4), np.int64),
        "optimizer/steps": np.array(step),
    }
    return State(step, {"epoch": step // 10, "best": float("inf")}, arrays)


def saved(folder, *steps, disk=None, **more):
    """Save states one after the other; whatever fails, fails."""
    given = {} if disk is None else {"disk": disk}
    checkpoint = Checkpoint.open(folder, IDENTITY, **given, **more)
    try:
        for step in steps:
            checkpoint.save_now(state(step))
    finally:
        checkpoint.close()


def found(folder):
    """Return the step of the newest whole state, after a look at every value of it."""
    checkpoint = Checkpoint.open(folder, IDENTITY)
    try:
        latest = checkpoint.latest()
    finally:
        checkpoint.close()
    if latest is None:
        return None
    expected = state(latest.step)
    assert latest.facts == expected.facts
    assert set(latest.arrays) == set(expected.arrays)
    for name, array in expected.arrays.items():
        np.testing.assert_array_equal(latest.arrays[name], array, strict=True)
    return latest.step
