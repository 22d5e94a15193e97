import errno
import resource
import signal
import subprocess
import sys
import warnings
import weakref

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file

from anybatch.errors import AnybatchWarning
from anybatch.train.checkpoint import KEPT_STATES, ChangedSince, Checkpoint, FolderInUse
from anybatch.train.checkpoint_files import State
from anybatch.train.checkpoint_writer import Writer
from tests.checkpoint.disks import IDENTITY, FailingAt, found, saved, state

WRITE_FOREVER = """
import sys
from tests.checkpoint.disks import IDENTITY, found, state
from anybatch.train.checkpoint import Checkpoint
start = (found(sys.argv[1]) or 0) + 1
checkpoint = Checkpoint.open(sys.argv[1], IDENTITY)
for step in range(start, 10**9):
    checkpoint.save_now(state(step))
    print(step, flush=True)
"""


def operations(tmp_path):
    disk = FailingAt(0)
    saved(tmp_path / "counted", 1, 2, 3)
    saved(tmp_path / "counted", 4, disk=disk)
    return disk.done


def test_what_was_saved_is_found(tmp_path):
    assert found(tmp_path) is None
    saved(tmp_path, 1, 2)
    assert found(tmp_path) == 2


def test_the_last_few_states_are_kept(tmp_path):
    saved(tmp_path, *range(1, 8))
    assert len(list(tmp_path.glob("state-*.json"))) == KEPT_STATES
    assert len(list(tmp_path.glob("state-*.safetensors"))) == KEPT_STATES


def test_the_library_reads_the_arrays(tmp_path):
    saved(tmp_path, 7)
    (file,) = tmp_path.glob("*.safetensors")
    loaded = load_file(file)
    np.testing.assert_array_equal(loaded["model/kernel"], np.full((5, 3), 7, np.float32))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3).T,
        np.array(3, np.uint8),
        np.array([True, False]),
        np.arange(4, dtype=">f4"),
        np.array([1.5, -2], np.float16),
        np.array([1.5, -2], ml_dtypes.bfloat16),
        np.zeros((3, 0, 2)),
        np.array([2**63], np.uint64),
    ],
    ids=str,
)
def test_an_array_of_any_kind_comes_back_bit_by_bit(tmp_path, array):
    checkpoint = Checkpoint.open(tmp_path, {})
    checkpoint.save_now(State(1, {}, {"a": array, "b": array}))
    for name in ("a", "b"):
        stored = checkpoint.latest().arrays[name]
        assert stored.shape == array.shape
        assert stored.astype(array.dtype).tobytes() == np.ascontiguousarray(array).tobytes()
    checkpoint.close()


@pytest.mark.parametrize("at", range(1, 20))
def test_a_disk_that_fails_at_any_operation_costs_that_state_at_most(tmp_path, at):
    last = operations(tmp_path)
    assert 10 < last < 20
    folder = tmp_path / "states"
    saved(folder, 1, 2, 3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        saved(folder, 4, disk=FailingAt(at))
    step = found(folder)
    assert step in (3, 4)
    if step == 3:
        assert any(issubclass(one.category, AnybatchWarning) for one in caught)
    saved(folder, 5)
    assert found(folder) == 5
    assert not list(folder.glob(".*"))


def test_a_file_system_that_is_full_costs_that_state_and_says_so(tmp_path):
    saved(tmp_path, 1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        checkpoint = Checkpoint.open(tmp_path, IDENTITY)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        with pytest.warns(AnybatchWarning, match=str(errno.EFBIG)):
            checkpoint.save_now(state(2, size=10_000))
        checkpoint.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert found(tmp_path) == 1


def test_a_flipped_byte_anywhere_is_noticed_or_changes_nothing(tmp_path):
    saved(tmp_path, 1, 2)
    newest = sorted(tmp_path.glob("state-*"))[-2:]
    assert {file.suffix for file in newest} == {".json", ".safetensors"}
    for file in newest:
        whole = file.read_bytes()
        for at in range(len(whole)):
            damaged = bytearray(whole)
            damaged[at] ^= 0x5A
            file.write_bytes(damaged)
            assert found(tmp_path) in ((1,) if file.suffix == ".safetensors" else (1, 2))
        file.write_bytes(whole)
    assert found(tmp_path) == 2


@pytest.mark.parametrize("ending", [".json", ".safetensors"])
@pytest.mark.parametrize("keep", [0, 1, 100])
def test_a_file_that_was_cut_or_lost_is_passed_over(tmp_path, ending, keep):
    saved(tmp_path, 1, 2)
    newest = max(tmp_path.glob(f"state-*{ending}"))
    newest.write_bytes(newest.read_bytes()[:keep])
    assert found(tmp_path) == 1
    newest.unlink()
    assert found(tmp_path) == 1


def test_a_writer_killed_at_random_moments_always_leaves_a_whole_state(tmp_path):
    reached = 0
    for kill in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", WRITE_FOREVER, tmp_path / "states"], stdout=subprocess.PIPE, text=True
        ) as writer:
            for _ in range(1 + kill * 3):
                reached = int(writer.stdout.readline())
            writer.kill()
            reached = max([reached, *map(int, writer.stdout.read().split())])
        assert found(tmp_path / "states") >= reached


def test_a_changed_thing_is_named(tmp_path):
    saved(tmp_path, 1)
    checkpoint = Checkpoint.open(tmp_path, IDENTITY | {"batch size": "128"})
    with pytest.raises(ChangedSince, match=r"the batch size changed .* it was 64 and is 128"):
        checkpoint.latest()
    checkpoint.close()


def test_starting_anew_forgets_what_was(tmp_path):
    saved(tmp_path, 1, 2)
    checkpoint = Checkpoint.open(tmp_path, {"model": "another"}, resume=False)
    assert checkpoint.latest() is None
    checkpoint.close()


def test_one_folder_is_for_one_training_at_a_time(tmp_path):
    first = Checkpoint.open(tmp_path, IDENTITY)
    with pytest.raises(FolderInUse):
        Checkpoint.open(tmp_path, IDENTITY)
    first.close()
    Checkpoint.open(tmp_path, IDENTITY).close()


def test_arrays_that_are_made_when_asked_for_are_written_one_at_a_time(tmp_path):
    alive = []

    class Lazy(dict):
        def items(self):
            return ((name, self[name]) for name in self)

        def __getitem__(self, name):
            assert sum(one() is not None for one in alive) <= 1
            array = np.full(1000, super().__getitem__(name))
            alive.append(weakref.ref(array))
            return array

    checkpoint = Checkpoint.open(tmp_path, {})
    checkpoint.save_now(State(1, {}, Lazy({"a": 1, "b": 2, "c": 3})))
    assert checkpoint.latest().arrays["c"][0] == 3
    checkpoint.close()


def test_saving_later_returns_at_once_and_the_newest_wins(tmp_path):
    checkpoint = Checkpoint.open(tmp_path, IDENTITY)
    for step in range(1, 30):
        checkpoint.save_later(state(step, size=20_000))
    checkpoint.close()
    latest = Checkpoint.open(tmp_path, IDENTITY).latest()
    assert latest.step == 29
    assert len(list(tmp_path.glob("state-*.json"))) <= KEPT_STATES


def test_a_state_that_was_not_written_is_heard_of_even_if_the_next_one_was():
    def write(one):
        if one.step == 1:
            raise OSError(errno.ENOSPC, "the disk was full")

    writer = Writer(write)
    for step in (1, 2):
        writer.hand_over(state(step))
        writer.finish()
    assert "the disk was full" in str(writer.take_problem())
    assert writer.take_problem() is None
    writer.close()


def test_saves_come_as_seldom_as_they_cost(tmp_path):
    now = [0.0]
    checkpoint = Checkpoint.open(tmp_path, IDENTITY, clock=lambda: now[0])
    assert not checkpoint.due()
    now[0] = 5.0
    assert checkpoint.due()
    checkpoint.cadence.began()
    now[0] = 7.0
    checkpoint.cadence.ended()
    now[0] = 7.0 + 197.9
    assert not checkpoint.due()
    now[0] = 7.0 + 198.1
    assert checkpoint.due()
    checkpoint.close()
