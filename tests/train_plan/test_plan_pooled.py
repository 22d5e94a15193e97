"""Where an allocator keeps what it has had, the limit holds although no piece may be of use again."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anybatch.train.plan_known import _far_from
from anybatch.train.plan_pooled import PooledSearch
from anybatch.train.plan_search import MARGIN, Split, chosen
from anybatch.train.probe import Taken
from anybatch.train.split import largest_part
from tests.train_plan.test_plan_families import MB, child

FIXED = 20 * MB


@dataclass
class Pool:
    """A machine whose allocator gives nothing back, and has no use for what smaller sizes have left."""

    per_sample: int
    sums: int
    free: int
    floor: int = 0
    """What the commit takes, behind the parts."""
    held: int = FIXED
    largest: int = 0
    trials: int = 0

    def trial(self, rows, kind):
        self.trials += rows > 8
        used = max(self.floor, rows * self.per_sample + (0 if kind is Split.ONE else self.sums))
        if used > self.largest:
            self.held, self.largest = self.held + used, used
        return Taken(self.held, self.held, used)

    def started(self):
        for rows in (2, 1):
            found = {"whole_start": self.trial(rows, Split.ONE), "start": self.trial(rows, Split.SEVERAL)}
        return found


def searched(pool, batch):
    def trial(rows, kind):
        # streams have no other parts; one part that is larger than half can be put together
        assert rows == largest_part(batch, rows) or (kind is Split.ONE and batch / 2 < rows < batch)
        return pool.trial(rows, kind)

    return PooledSearch(trial, batch, pool.free, **pool.started()).run()


machines = st.builds(
    Pool,
    per_sample=st.integers(1000, 20 * MB),
    sums=st.integers(0, 40 * MB),
    free=st.integers(300 * MB, 5000 * MB),
    # a slope that hides under more than that is found by leaping over it: small sizes are sixteen times apart
    floor=st.integers(0, 4 * MB),
)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(machines, st.integers(1, 4096))
def test_nothing_is_tried_that_might_not_fit(pool, batch):
    searched(pool, batch)
    assert pool.held <= pool.free
    assert pool.trials <= 4


@settings(max_examples=100, deadline=None, derandomize=True)
@given(machines, st.integers(1, 4096))
def test_what_was_tried_is_what_is_chosen_and_predicted(pool, batch):
    peaks = searched(pool, batch)
    part = chosen(peaks, batch, pool.free)
    assert part is not None
    before = pool.held
    pool.trial(part, Split.ONE if part == batch else Split.SEVERAL)
    assert pool.held == before
    # what is predicted has a margin even where what was seen has none
    assert peaks.predicted_peak_bytes(part, batch) == pytest.approx(before, rel=MARGIN, abs=MB)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(machines, st.integers(2, 4096))
def test_a_good_part_of_what_is_free_is_used(pool, batch):
    part = chosen(searched(pool, batch), batch, pool.free)
    fewer = -(-batch // max(1, -(-batch // part) - 1))
    needed = max(pool.floor, pool.sums + fewer * pool.per_sample)
    assert part == batch or FIXED + pool.floor + 1.25 * needed > pool.free / 3


@dataclass
class Returned(Pool):
    """One whose large tensors come from the C library: they go back, and a second part finds them there."""

    def trial(self, rows, kind):
        self.trials += rows > 8
        taken = rows * self.per_sample * (1.0 if kind is Split.ONE else 1.5)
        self.largest = max(self.largest, self.held + round(taken))
        return Taken(self.held + round(taken), self.held, 0)


@pytest.mark.parametrize(("free", "whole"), [(800, True), (700, True), (500, False), (300, False)])
def test_a_batch_that_takes_less_whole_than_in_parts_stays_whole_where_it_fits(free, whole):
    pool = Returned(per_sample=MB // 2, sums=0, free=free * MB)
    part = chosen(searched(pool, 1024), 1024, pool.free)
    assert (part == 1024) is whole
    assert pool.largest <= pool.free
    assert pool.trials <= 4


@dataclass
class Scattered(Pool):
    """Tensors of the C library lie scattered, so few rows take more each; large ones come from the pool."""

    scatter: float = 1.5

    def trial(self, rows, kind):
        self.trials += rows > 8
        if rows >= 1024:
            return super().trial(rows, kind)
        times = self.scatter if rows <= 512 else 1.1
        taken = round(rows * self.per_sample * times)
        return Taken(self.held + taken, self.held, 0)


def test_more_than_half_of_a_batch_tells_better_what_all_of_it_takes():
    pool = Scattered(per_sample=MB // 4, sums=0, free=370 * MB)
    # by 512 rows all of them take 384 MiB
    assert chosen(searched(pool, 1024), 1024, pool.free) == 1024
    assert pool.held <= pool.free
    assert pool.trials <= 4


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(1000, 20 * MB), st.integers(300 * MB, 5000 * MB), st.integers(1, 4096))
def test_where_memory_goes_back_nothing_is_tried_that_might_not_fit(per_sample, free, batch):
    pool = Returned(per_sample, sums=0, free=free)
    part = chosen(searched(pool, batch), batch, free)
    assert part is not None
    assert pool.largest <= free
    assert pool.trials <= 4


def test_a_part_of_one_sample_tells_nothing_about_the_whole_batch():
    pool = Returned(per_sample=MB, sums=0, free=1000 * MB)
    assert not PooledSearch(pool.trial, 4, pool.free, **pool.started())._whole_may_fit(1)


@pytest.mark.parametrize("parts", [2, 3, 4])
def test_a_larger_look_has_rows_that_can_be_had(parts):
    pool = Pool(per_sample=MB, sums=0, free=5000 * MB)
    part = largest_part(1024, -(-1024 // parts))
    looks = PooledSearch(pool.trial, 1024, pool.free, **pool.started())._looks(part)
    assert len(looks) == 2
    assert all(rows > 512 or rows == largest_part(1024, rows) for rows in looks)


def test_running_out_all_the_same_leads_to_less():
    pool = Pool(per_sample=MB, sums=0, free=1000 * MB)
    starts = pool.started()

    def trial(rows, kind):
        return None if rows > 100 else pool.trial(rows, kind)

    part = chosen(PooledSearch(trial, 512, pool.free, **starts).run(), 512, pool.free)
    assert 50 <= part <= 100


def test_sums_that_grow_with_the_batch_are_foreseen():
    pool = Pool(per_sample=MB, sums=0, free=400 * MB)
    search = PooledSearch(pool.trial, 512, pool.free, **pool.started(), sums_bytes=1000 * MB)
    assert chosen(search.run(), 512, pool.free) is None


@settings(max_examples=100, deadline=None, derandomize=True)
@given(machines, st.integers(1, 4096), st.integers(MB, 200 * MB))
def test_where_sums_grow_nothing_is_tried_either_that_might_not_fit(pool, batch, sums):
    PooledSearch(pool.trial, batch, pool.free, **pool.started(), sums_bytes=sums).run()
    assert pool.held <= pool.free
    assert pool.trials <= 4


def test_what_was_kept_under_another_limit_is_no_guide():
    assert not _far_from(0, 500)
    assert not _far_from(1000, 950)
    assert _far_from(1000, 500)
    assert _far_from(1000, 1500)


@pytest.mark.long
def test_a_convolution_keeps_its_limit_with_the_pool_of_onednn(tmp_path, monkeypatch):
    """Wherever TensorFlow has oneDNN, whether or not it would choose it by itself."""
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "1")
    monkeypatch.delenv("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", raising=False)
    run = child(tmp_path, "convolution", "200")
    assert run["highest"] <= run["limit"]
    assert run["parts"] > 1
    assert run["probes"] <= 4
