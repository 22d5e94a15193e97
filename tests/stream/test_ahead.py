"""What works ahead of the consumer learns the right sizes, and never leaves the consumer waiting."""

import threading
from concurrent.futures import Future
from dataclasses import dataclass

import pytest

from anybatch.stream.ahead import _UnderWay, prefetched
from anybatch.stream.meters import Meter

PATIENCE_SECONDS = 20


@dataclass
class Weighed:
    """A chunk as far as counting goes."""

    nbytes: int
    rows: int = 1


def made(n_bytes):
    future = Future()
    future.set_result(Weighed(n_bytes))
    return future


def test_results_that_are_larger_than_expected_are_counted_once_however_many_are_under_way():
    meter = Meter("map", 1 << 40)
    under_way = _UnderWay(meter)
    under_way.add(Weighed(100), made(400))
    under_way.first()
    for _ in range(16):
        under_way.add(Weighed(100), made(600))
    while under_way:
        under_way.first()
    under_way.add(Weighed(100), made(600))
    assert meter.held_bytes == 100 + 600


def test_a_first_chunk_without_bytes_tells_how_much_comes_of_it():
    under_way = _UnderWay(Meter("map", 1 << 40))
    under_way.add(Weighed(0), made(400))
    assert under_way.first().nbytes == 400


class Immeasurable:
    rows = 1

    @property
    def nbytes(self):
        raise LookupError("its size is not known")


def cannot_be_closed():
    try:
        while True:
            yield Immeasurable()
    finally:
        raise RuntimeError("nor closed")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_consumer_hears_of_a_failure_even_if_what_failed_cannot_be_closed():
    chunks, heard = prefetched(cannot_be_closed(), 2, Meter("prefetch", 1 << 20)), []

    def consume():
        try:
            next(chunks)
        except LookupError as failure:
            heard.append(str(failure))

    # on a thread that nobody waits for: it must not hold up the tests if it is held up itself
    consumer = threading.Thread(target=consume, daemon=True)
    consumer.start()
    consumer.join(PATIENCE_SECONDS)
    assert heard == ["its size is not known"]
