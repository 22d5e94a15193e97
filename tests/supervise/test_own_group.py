import os
import subprocess
import sys

import pytest

from anybatch.supervise.observe import Sample
from anybatch.supervise.own_group import OwnGroup, own_group, remove_abandoned
from anybatch.supervise.trail import MOST_SAMPLES, Trail
from tests.memory.kernel_trees import limits, machine, version_1, version_2, write

MB = 1 << 20


def test_in_version_1_the_group_is_made_below_our_own(tmp_path):
    top = version_1(machine(tmp_path), "/a")
    limits(top, 1, {"/": None, "/a": None})
    made = own_group(64 * MB, root=tmp_path)
    assert made.group.folder.parent == top / "a"
    assert made.group.limit_bytes() == 64 * MB


def test_in_version_2_memory_is_handed_down_first(tmp_path):
    top = version_2(machine(tmp_path), "/a")
    write(top, "a/cgroup.subtree_control", "cpu")
    made = own_group(64 * MB, root=tmp_path)
    assert made.group.folder.parent == top / "a"
    assert (top / "a/cgroup.subtree_control").read_text() == "+memory"
    assert made.group.limit_bytes() == 64 * MB


def test_in_version_2_a_group_that_holds_processes_gets_a_sister(tmp_path):
    top = version_2(machine(tmp_path), "/a/b")
    write(top, "a/cgroup.subtree_control", "memory")
    # a folder cannot be written, as the kernel refuses it for a group with processes
    (top / "a/b/cgroup.subtree_control").mkdir(parents=True)
    made = own_group(64 * MB, root=tmp_path)
    assert made.group.folder.parent == top / "a"


def test_where_no_group_can_be_made_the_reason_is_given(tmp_path):
    assert "no memory groups" in own_group(64 * MB, root=tmp_path)
    top = version_2(machine(tmp_path), "/")
    (top / "cgroup.subtree_control").mkdir(parents=True)
    assert "directory" in own_group(64 * MB, root=tmp_path).lower()


@pytest.mark.parametrize("count", [1, 100, 257, 10_000])
def test_a_long_run_is_kept_in_few_samples_and_no_peak_is_lost(count):
    trail = Trail()
    for number in range(count):
        trail.add(Sample(float(number), 1000 if number == count // 2 else number % 7, number, 1))
    assert len(trail.samples) <= MOST_SAMPLES
    assert max(sample.held_bytes for sample in trail.samples) == trail.peak_bytes == 1000
    assert [sample.seconds for sample in trail.samples] == sorted(sample.seconds for sample in trail.samples)


def test_a_group_is_removed_with_all_that_was_said_of_it(tmp_path):
    (tmp_path / "group").mkdir()
    from anybatch.memory import Group

    OwnGroup(Group(tmp_path / "group", tmp_path, 1)).remove()
    assert not (tmp_path / "group").exists()


def test_the_groups_of_killed_supervisors_are_removed_and_no_others(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    names = [f"anybatch-{gone.pid}-1", f"anybatch-{os.getpid()}-1", "anybatch-mine-1", "somebody"]
    for name in names:
        (tmp_path / name).mkdir()
    remove_abandoned(tmp_path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(names[1:])
