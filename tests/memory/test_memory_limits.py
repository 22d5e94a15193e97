import pytest

from anybatch.memory import Group, allocations_may_fail, allowance, groups_of
from tests.memory.kernel_trees import counters, limits, machine, version_1, version_2, write

GB = 1 << 30
LAY_OUT = {1: version_1, 2: version_2}
VERSIONS = pytest.mark.parametrize("version", [1, 2])


def grouped(root, version, by_path, *, path="/a/b", shows="/"):
    top = LAY_OUT[version](machine(root), path, shows=shows)
    limits(top, version, by_path)
    return top


@VERSIONS
@pytest.mark.parametrize("tightest", ["/a", "/a/b"])
def test_the_tightest_group_of_all_around_decides(tmp_path, version, tightest):
    grouped(tmp_path, version, {"/": None, "/a": 3 * GB, "/a/b": 3 * GB} | {tightest: 2 * GB})
    found = allowance(root=tmp_path)
    assert (found.limit_bytes, found.whole_bytes) == (2 * GB, 2 * GB)
    assert found.source.endswith(tightest)


@VERSIONS
def test_without_limits_in_the_groups_the_machine_decides(tmp_path, version):
    grouped(tmp_path, version, {"/": None, "/a": None, "/a/b": None})
    found = allowance(root=tmp_path)
    assert (found.whole_bytes, found.source) == (8 * GB, "the machine")
    assert found.limit_bytes == 7 * GB  # 1 GiB is ours already and 6 more can be had


@VERSIONS
def test_what_others_hold_in_the_group_is_not_ours_and_file_pages_are(tmp_path, version):
    top = grouped(tmp_path, version, {"/a": None, "/a/b": 4 * GB})
    counters(top / "a/b", version, used=3 * GB, inactive_file=GB // 2, active_file=GB // 4)
    assert allowance(root=tmp_path).limit_bytes == GB + (4 * GB - 3 * GB + GB // 2 + GB // 4)


def test_the_point_where_the_kernel_slows_a_group_down_is_a_limit_too(tmp_path):
    top = grouped(tmp_path, 2, {"/a": 3 * GB, "/a/b": None})
    write(top, "a/b/memory.high", 2 * GB)
    assert allowance(root=tmp_path).limit_bytes == 2 * GB


@VERSIONS
@pytest.mark.parametrize(
    ("path", "shows"),
    [
        ("/docker/abc", "/docker/abc"),  # the container sees its own group as the top
        ("/", "/"),  # a namespace of groups
        ("/../outside", "/"),  # a namespace that was joined from outside
        ("/docker/abc", "/docker/a"),  # a mount of something else with a similar name
        ("/gone/since", "/"),
    ],
)
def test_in_a_container_the_group_that_can_be_seen_counts(tmp_path, version, path, shows):
    top = grouped(tmp_path, version, {}, path=path, shows=shows)
    write(top, {1: "memory.limit_in_bytes", 2: "memory.max"}[version], GB)
    assert [group.folder for group in groups_of(root=tmp_path)] == [top]
    assert allowance(root=tmp_path).whole_bytes == GB


@VERSIONS
def test_counters_of_a_group_are_read(tmp_path, version):
    counters(tmp_path, version, used=500, inactive_file=100, active_file=50, kills=3, peak=900)
    group = Group(tmp_path, tmp_path, version)
    assert (group.used_bytes(), group.kills(), group.peak_bytes()) == (350, 3, 900)


@VERSIONS
def test_a_group_that_tells_nothing_limits_nothing(tmp_path, version):
    group = Group(tmp_path / "nowhere", tmp_path, version)
    assert (group.limit_bytes(), group.used_bytes(), group.kills(), group.peak_bytes()) == (None,) * 4


def test_a_machine_without_groups_or_proc_still_has_an_answer(tmp_path):
    assert groups_of(root=tmp_path) == []
    assert allowance(root=tmp_path).source == "the machine"


def test_mount_points_with_blanks_are_found(tmp_path):
    version_2(machine(tmp_path), "/")
    line = "41 31 0:38 / /sys/my\\040groups rw - cgroup2 cgroup2 rw\n"
    write(tmp_path, "proc/self/mountinfo", line)
    write(tmp_path, "sys/my groups/memory.max", GB)
    assert allowance(root=tmp_path).whole_bytes == GB


LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max data size             {data:<20} unlimited            bytes
Max stack size            8388608              unlimited            bytes
Max address space         {space:<20} unlimited            bytes
"""


def limited(root, *, data="unlimited", space="unlimited"):
    write(machine(root), "proc/self/limits", LIMITS.format(data=data, space=space))
    status = root / "proc/self/status"
    status.write_text(f"{status.read_text()}VmSize:\t{5 << 20} kB\nVmData:\t{2 << 20} kB\n")


def test_what_may_still_be_mapped_is_a_limit_too(tmp_path):
    limited(tmp_path, space=6 * GB)
    found = allowance(root=tmp_path)
    assert (found.whole_bytes, found.source) == (6 * GB, "`ulimit -v`")
    # 5 GiB are mapped, 1 GiB of them held; a little is kept for stacks and heaps
    assert 2 * GB - (128 << 20) < found.limit_bytes < 2 * GB


def test_so_is_what_may_be_written_to(tmp_path):
    limited(tmp_path, data=3 * GB, space=9 * GB)
    assert allowance(root=tmp_path).source == "`ulimit -d`"


@pytest.mark.parametrize(
    ("space", "overcommit", "expected"), [("unlimited", 0, False), (6 * GB, 1, True), ("unlimited", 2, True)]
)
def test_where_allocations_may_fail_is_known(tmp_path, space, overcommit, expected):
    limited(tmp_path, space=space)
    write(tmp_path, "proc/sys/vm/overcommit_memory", overcommit)
    assert allocations_may_fail(root=tmp_path) is expected
