import os
import subprocess
import sys
import time

import pytest

from anybatch.memory import Held, PeakWatch, held, held_by_tree, make_peaks_predictable, tree_of
from tests.memory.kernel_trees import write

MB = 1 << 20
HOLD_IN_CHILD = """
import os, sys
block = bytearray({parent} << 20)
if os.fork() == 0:
    block = None
    block = bytearray({child} << 20)
    print(os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
os.wait()
"""


def test_what_a_process_holds_grows_by_what_it_allocates():
    before = held().counted_bytes
    block = bytearray(64 * MB)
    grown = held().counted_bytes - before
    assert 60 * MB < grown < 72 * MB
    del block


def test_the_children_of_a_process_count_too():
    script = HOLD_IN_CHILD.format(parent=30, child=50)
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        child = int(parent.stdout.readline())
        assert tree_of(parent.pid) == [parent.pid, child]
        assert held_by_tree(parent.pid).counted_bytes > 75 * MB
        assert held(parent.pid).counted_bytes < 60 * MB
        parent.stdin.close()


def test_a_process_that_is_gone_holds_nothing():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert held(gone.pid) == Held()
    assert held_by_tree(gone.pid).counted_bytes == 0


def test_names_with_brackets_do_not_confuse_the_tree(tmp_path):
    write(tmp_path, "proc/7/stat", "7 (a) R 1 (b) S 3 4")
    write(tmp_path, "proc/9/stat", "9 (worker (2)) S 7 1 1")
    write(tmp_path, "proc/cpuinfo", "")
    assert tree_of(7, root=tmp_path) == [7, 9]


def test_shared_and_swapped_bytes_count_and_file_pages_do_not(tmp_path):
    lines = "VmHWM: 99 kB\nRssAnon: 10 kB\nRssFile: 1000 kB\nRssShmem: 5 kB\nVmSwap: 2 kB\n"
    write(tmp_path, "proc/self/status", lines)
    assert held(root=tmp_path).counted_bytes == 17 * 1024


@pytest.mark.parametrize("sampled", [False, True], ids=["by the kernel's mark", "by sampling"])
def test_a_peak_that_is_over_is_seen(tmp_path, sampled):
    root = without_clear_refs(tmp_path) if sampled else None
    with PeakWatch(**({"root": root} if root else {})) as watch:
        block = bytearray(80 * MB)
        if sampled:
            wait_until(lambda: watch.peak_bytes - watch.before_bytes > 75 * MB)
        del block
    assert 75 * MB < watch.peak_bytes - watch.before_bytes < 100 * MB


def test_a_second_watch_does_not_see_the_peak_of_the_first():
    with PeakWatch():
        block = bytearray(80 * MB)
        del block
    with PeakWatch() as second:
        pass
    assert second.peak_bytes - second.before_bytes < 20 * MB


def test_freed_blocks_go_back_to_the_system_once_peaks_are_predictable():
    script = (
        "import ctypes; from anybatch.memory import held, make_peaks_predictable\n"
        "malloc = ctypes.CDLL(None).malloc; malloc.restype = ctypes.c_void_p\n"
        "free = ctypes.CDLL(None).free; free.argtypes = [ctypes.c_void_p]\n"
        # freeing a mapped block makes glibc keep blocks of that size from then on
        "free(malloc(30 << 20)); {prepare}\n"
        "low = [malloc(20 << 20) for _ in range(4)]\n"
        "[ctypes.memset(one, 1, 20 << 20) for one in low]; keep = malloc(900 << 10)\n"
        "[free(one) for one in low]; print(held().counted_bytes)"
    )

    def left_after(prepare):
        run = [sys.executable, "-c", script.format(prepare=prepare)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
        return int(subprocess.run(run, env=environment, capture_output=True, check=True).stdout)

    if not make_peaks_predictable():
        pytest.skip("there is no glibc here")
    assert left_after("make_peaks_predictable()") < 30 * MB < left_after("pass")


def without_clear_refs(folder):
    """Return a root where everything is as it is, but nobody may reset the mark."""
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/self/status").symlink_to("/proc/self/status")
    (folder / "proc/self/clear_refs").mkdir()
    return folder


def wait_until(holds):
    for _ in range(2000):
        if holds():
            return
        time.sleep(0.005)
