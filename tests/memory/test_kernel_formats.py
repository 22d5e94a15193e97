"""Version 2 of memory groups, letter by letter as the kernel writes it."""

import pytest

from anybatch.memory import Group, allowance, groups_of
from anybatch.supervise.observe import pressure_in
from tests.memory.kernel_trees import machine, write

GB = 1 << 30
POD, CONTAINER = "kubepods.slice/kubepods-pod7.slice", "cri-containerd-4f1c.scope"

MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
24 22 0:22 / /proc rw,nosuid,nodev,noexec,relatime shared:12 - proc proc rw
29 22 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate
"""
STAT = """\
anon 734003200
file 419430400
kernel 12582912
kernel_stack 589824
pagetables 4194304
sec_pagetables 0
percpu 8192
sock 4096
vmalloc 0
shmem 104857600
zswap 0
zswapped 0
file_mapped 52428800
file_dirty 0
file_writeback 0
swapcached 0
anon_thp 629145600
file_thp 0
shmem_thp 0
inactive_anon 838860800
active_anon 0
inactive_file 209715200
active_file 104857600
unevictable 0
slab_reclaimable 1048576
slab_unreclaimable 2097152
slab 3145728
workingset_refault_anon 0
pgfault 250000
oom_kill_is_not_a_field_here 9
"""
EVENTS = "low 0\nhigh 21\nmax {refused}\noom 3\noom_kill {kills}\noom_group_kill 0\n"
PRESSURE = """\
some avg10=12.50 avg60=3.10 avg300=0.71 total=1835021
full avg10=9.00 avg60=2.20 avg300=0.50 total=901
"""


@pytest.fixture
def container(tmp_path):
    """A container of 2 GiB, of which 1.2 GB are in use, in a pod of 3 GiB, in a slice without a limit."""
    write(machine(tmp_path), "proc/self/cgroup", f"0::/{POD}/{CONTAINER}\n")
    write(tmp_path, "proc/self/mountinfo", MOUNTS)
    top = tmp_path / "sys/fs/cgroup"
    write(top, "cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc\n")
    write(top, "memory.stat", STAT)
    for folder, most in (("kubepods.slice", "max"), (POD, 3 * GB), (f"{POD}/{CONTAINER}", 2 * GB)):
        for name, value in {
            "memory.max": most,
            "memory.high": "max",
            "memory.min": 0,
            "memory.current": 1_258_291_200,
            "memory.peak": 1_900_000_000,
            "memory.swap.current": 1_000_000,
            "memory.swap.max": "max",
            "memory.oom.group": 1,
            "memory.stat": STAT.rstrip(),
            "memory.events": EVENTS.format(refused=17, kills=2).rstrip(),
            "memory.pressure": PRESSURE.rstrip(),
            "cgroup.procs": "41\n42",
        }.items():
            write(top, f"{folder}/{name}", f"{value}\n")
    return top / POD / CONTAINER


def test_the_group_and_all_around_it_are_found_innermost_first(tmp_path, container):
    top = tmp_path / "sys/fs/cgroup"
    expected = [container, top / POD, top / "kubepods.slice", top]
    assert [(group.folder, group.version) for group in groups_of(root=tmp_path)] == [
        (folder, 2) for folder in expected
    ]


def test_every_number_of_a_group_is_read(container):
    group = Group(container, container, 2)
    assert group.limit_bytes() == 2 * GB
    assert group.used_bytes() == 1_258_291_200 - 209_715_200 - 104_857_600
    assert group.anonymous_bytes() == 734_003_200 + 104_857_600 + 1_000_000
    assert (group.peak_bytes(), group.kills()) == (1_900_000_000, 2)
    assert group.processes() == [41, 42]
    assert pressure_in(group) == 0.125


def test_max_is_no_limit_and_the_root_has_none_to_read(tmp_path, container):
    limits = [group.limit_bytes() for group in groups_of(root=tmp_path)]
    assert limits == [2 * GB, 3 * GB, None, None]
    assert allowance(root=tmp_path).whole_bytes == 2 * GB


@pytest.mark.parametrize("name", ["memory.max", "memory.high"])
def test_a_tighter_group_further_out_decides(tmp_path, container, name):
    write(container.parent, name, f"{GB}\n")
    found = allowance(root=tmp_path)
    assert found.whole_bytes == GB
    assert found.source.endswith(POD)


def test_a_kill_shows_as_a_counter_that_rose(container):
    group = Group(container, container, 2)
    before = group.kills()
    write(container, "memory.events", EVENTS.format(refused=18, kills=3))
    assert group.kills() - before == 1


def test_kills_in_groups_below_are_told_apart(container):
    group = Group(container, container, 2)
    assert group.kills_here() == group.kills() == 2
    write(container, "memory.events.local", EVENTS.format(refused=1, kills=0))
    assert (group.kills_here(), group.kills()) == (0, 2)


def test_kernels_before_5_19_tell_no_peak_and_that_is_no_error(container):
    (container / "memory.peak").unlink()
    assert Group(container, container, 2).peak_bytes() is None
