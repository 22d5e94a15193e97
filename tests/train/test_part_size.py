"""Parts get smaller when memory runs out, and larger again after a quiet time."""

from anybatch.train.transaction import QUIET_STEPS, PartSize


def updates_until_grown(size: PartSize) -> int:
    before, made = size.now, 0
    while size.now == before:
        size.finished()
        made += 1
    return made


def test_a_larger_part_is_tried_again_after_a_quiet_time_however_often_it_was_cut_before() -> None:
    size = PartSize(64)
    for _ in range(3):
        size.shrink(size.now or 0, "part", "there was none")
    assert size.now is not None
    assert size.now < 32
    assert updates_until_grown(size) == QUIET_STEPS


def test_each_part_that_was_tried_again_too_early_doubles_the_patience() -> None:
    size = PartSize(64)
    size.shrink(64, "part", "there was none")
    for failures in range(3):
        assert updates_until_grown(size) == QUIET_STEPS * 2**failures
        size.shrink(64, "part", "there was none")


def test_parts_never_grow_beyond_what_was_wanted() -> None:
    size = PartSize(64)
    size.shrink(64, "part", "there was none")
    for _ in range(10 * QUIET_STEPS):
        size.finished()
    assert size.now == 64
