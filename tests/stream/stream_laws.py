"""What holds for every stream, as functions that any test can ask of any stream."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anybatch.records import BytesColumn, RaggedColumn, row
from anybatch.stream import Stream
from anybatch.stream.iterator import StreamIterator
from anybatch.stream.run import Run

STATE_BYTES = 600
settings.register_profile("streams", deadline=None, suppress_health_check=list(HealthCheck))


def law(*strategies: st.SearchStrategy[Any], examples: int, soak: int) -> Callable[..., Any]:
    """Make a test of a function of one value from each strategy: some in every run, many in `make soak`."""

    def test_of(check: Callable[..., None]) -> Callable[..., None]:
        def once(drawn: tuple[Any, ...]) -> None:
            check(*drawn)

        # the name under which hypothesis keeps what failed
        once.__name__ = check.__name__

        @pytest.mark.parametrize("examples", [examples, pytest.param(soak, marks=pytest.mark.soak)])
        def test(examples: int) -> None:
            chosen = settings(settings.get_profile("streams"), max_examples=examples)
            chosen(given(st.tuples(*strategies))(once))()

        return test

    return test_of


def opened(stream: Stream, *, threads: int = 2, rows: int = 256) -> StreamIterator:
    """Iterate as a machine with so many cores would, some rows at a time."""
    return StreamIterator(stream._stage, Run(threads=threads).by(rows))


def plain(value: Any) -> Any:
    """Return an element as something that `==` compares to the last bit: types, shapes and contents."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, BytesColumn):
        return "bytes", value.shape, value.to_list()
    if isinstance(value, RaggedColumn):
        return "lists", plain(value.values), value.offsets.tolist()
    if value is None or isinstance(value, bytes | str):
        return value
    array = np.asarray(value)
    return array.dtype.str, array.shape, array.tolist() if array.dtype.hasobject else array.tobytes()


def elements(stream: Stream | Iterable[Any], **how: int) -> list[Any]:
    """Return everything that comes, comparable."""
    return [plain(one) for one in (opened(stream, **how) if isinstance(stream, Stream) else stream)]


def split(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the records of batches of mappings."""
    for batch in batches:
        for at in range(len(batch["n"])):
            yield {name: row(column, at) for name, column in batch.items()}


def numbers(stream: Iterable[Any]) -> list[int]:
    """Return the numbers of the records that come, in order, of a stream with or without batches."""
    return [int(one) for element in stream for one in np.ravel(element["n"])]


def check_every_record_comes_once(stream: Stream, count: int) -> None:
    assert sorted(numbers(stream)) == list(range(count))


def check_threads_and_chunks_change_nothing(stream: Stream) -> None:
    expected = elements(stream, threads=1, rows=256)
    for threads, rows in [(2, 256), (7, 256), (1, 1), (2, 7), (7, 3)]:
        assert elements(stream, threads=threads, rows=rows) == expected, (threads, rows)


def check_restores_before_every_element(stream: Stream) -> None:
    """Stop before any element, go on elsewhere with another number of threads: the same rest comes."""
    iterator, states, whole = opened(stream), [], []
    while True:
        states.append(handed_over(iterator.get_state()))
        try:
            whole.append(plain(next(iterator)))
        except StopIteration:
            break
    for at, state in enumerate(states):
        again = opened(stream, threads=(1, 2, 7)[at % 3], rows=(256, 5, 1)[at % 3])
        again.set_state(state)
        assert elements(again) == whole[at:], f"restored before element {at} from {state}"


def check_stopping_after_every_element_changes_nothing(stream: Stream) -> None:
    """A run that is killed after each single element sees what an undisturbed one sees."""
    state, seen = opened(stream).get_state(), []
    while True:
        iterator = opened(stream, threads=1 + len(seen) % 2)
        iterator.set_state(handed_over(state))
        try:
            seen.append(plain(next(iterator)))
        except StopIteration:
            break
        state = iterator.get_state()
    assert seen == elements(stream)


def handed_over(state: Any) -> Any:
    """Return a state as another process gets it."""
    text = json.dumps(state)
    assert len(text) <= STATE_BYTES, text
    return json.loads(text)


def check_workers_see_what_one_sees(stream: Stream, workers: int) -> None:
    """Shards are what the whole stream deals out, one by one; so they are disjoint, complete and even."""
    whole = elements(stream)
    parts = [elements(stream.shard(workers, index)) for index in range(workers)]
    assert parts == [whole[index::workers] for index in range(workers)]
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def check_nothing_is_lost_or_repeated(
    worker: Callable[[int, int], Stream], generations: Sequence[Sequence[int]], last: int
) -> None:
    """Runs of several workers, each stopped after so many elements; then `last` workers to the end.

    `worker(count, index)` describes one worker's stream; every generation has one entry per worker.
    """
    expected = Counter(numbers(worker(1, 0)))
    seen: list[int] = []
    states: list[Any] = []
    for stops in [*generations, [None] * last]:
        iterators = [opened(worker(len(stops), index)) for index in range(len(stops))]
        for iterator, stop in zip(iterators, stops, strict=True):
            if states:
                iterator.set_state(states)
            seen += numbers(islice(iterator, stop))
        states = [handed_over(iterator.get_state()) for iterator in iterators]
    assert Counter(seen) == expected


def chi_square_limit(freedom: int) -> float:
    """Return what chi-square exceeds by chance once in a million (Wilson and Hilferty's approximation)."""
    share = 2 / (9 * freedom)
    return float(freedom * (1 - share + 4.7534 * share**0.5) ** 3)


def chi_square(counts: Any, expected: Any) -> float:
    """Return how far counts are from what was expected."""
    counts, expected = np.asarray(counts, float), np.asarray(expected, float)
    return float(((counts - expected) ** 2 / expected).sum())
