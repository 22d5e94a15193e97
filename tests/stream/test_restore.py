"""Stop anywhere, go on anywhere: the same rest."""

import numpy as np

import anybatch as ab
from tests.stream.pipelines import pipelines
from tests.stream.stream_laws import (
    check_restores_before_every_element,
    check_stopping_after_every_element_changes_nothing,
    check_threads_and_chunks_change_nothing,
    law,
)


@law(pipelines, examples=40, soak=3000)
def test_restoring_before_every_element_gives_the_same_rest(stream):
    check_restores_before_every_element(stream)


@law(pipelines, examples=30, soak=3000)
def test_stopping_after_every_element_changes_nothing(stream):
    check_stopping_after_every_element_changes_nothing(stream)


@law(pipelines, examples=40, soak=3000)
def test_threads_and_chunks_change_nothing(stream):
    check_threads_and_chunks_change_nothing(stream)


def test_windows_behind_a_filter_hold_the_same_rows_when_they_are_filled_again():
    numbers = ab.from_arrays({"n": np.arange(4096)})
    stream = numbers.filter(lambda record: record["n"] % 3 == 0).shuffle(seed=1, window="1KiB")
    whole = [int(record["n"]) for record in stream]
    assert sorted(whole) == list(range(0, 4096, 3))
    one = iter(stream)
    for passed in range(len(whole)):
        if passed % 97 == 0:
            again = iter(stream)
            again.set_state(one.get_state())
            assert [int(record["n"]) for record in again] == whole[passed:]
        next(one)
