"""Stop anywhere, go on anywhere: the same rest."""

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
