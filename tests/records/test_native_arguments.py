"""Numbers that no caller of ours gives the native module, and that it has to survive all the same."""

import subprocess
import sys

import pytest

from anybatch._native import Order, Scan, Writer
from tests.shard_files import some_records, starts_of, write_shard


def int64s(buffer):
    return memoryview(buffer).cast("q").tolist()


@pytest.mark.parametrize("stop", [5, 2**50, 2**61, 2**62, 2**64 - 1])
def test_an_order_is_asked_for_more_positions_than_it_has(stop):
    assert int64s(Order(5, []).records(1, stop)) == [1, 2, 3, 4]
    assert int64s(Order(5, []).records(stop, 2)) == []


@pytest.mark.parametrize("stop", [3, 2**50, 2**60, 2**64 - 1])
def test_an_index_is_asked_for_more_records_than_it_has(tmp_path, stop):
    records = some_records(3)
    scan = Scan(write_shard(tmp_path / "shard", records), "")
    while scan.advance(1 << 20):
        pass
    starts = starts_of(records)
    assert int64s(scan.finish().extents(1, stop)) == [*starts[1:3], *starts[2:4]]


@pytest.mark.parametrize(("size", "per_window"), [(2**58, 64), (2**64 - 1, 2**64 - 1)])
def test_a_window_larger_than_can_be_counted_is_one_window(size, per_window):
    order = Order(50, [("window", [1, 0, size, per_window])])
    assert sorted(int64s(order.records(0, 50))) == list(range(50))


def test_offsets_outside_the_values_of_a_batch_are_refused_before_anything_is_written(tmp_path):
    writer = Writer(tmp_path / "shard", "")
    eight_bytes, up_to_nine = Order(1, []).records(0, 1), Order(10, []).records(0, 10)
    with pytest.raises(ValueError, match="the offsets lie outside the values"):
        writer.write_batch(eight_bytes, up_to_nine)
    assert writer.records == 0
    writer.write_batch(eight_bytes, Order(9, []).records(0, 9))
    writer.finish()
    assert (tmp_path / "shard").stat().st_size == 8 * 17


FORKED = """
import os, sys
from anybatch._native import Reader

reader = Reader(
    [(sys.argv[1], "", None)], None, batch=2, most=2, drop_remainder=False, on_corrupt="raise",
    order=None, start=0, threads=1, depth=1, limit_bytes=1 << 24,
)
while reader.next():
    pass
if os.fork() == 0:
    assert (reader.stats(), reader.learnt()) == ((0, 0, 0, 0), [])
    os._exit(7)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
assert reader.stats()[3] == 2
assert len(reader.learnt()) == 1
"""


def test_in_a_forked_child_a_reader_is_not_asked_for_what_a_thread_of_the_parent_may_have_locked(tmp_path):
    shard = write_shard(tmp_path / "shard", some_records(3))
    program = [sys.executable, "-c", FORKED, shard]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
