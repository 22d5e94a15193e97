"""What goes wrong is said where it happened, and leaves nothing behind."""

import itertools
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import anybatch as ab
from anybatch.errors import UserFunctionFailed
from tests.stream.living_threads import check_no_thread_is_left, our_threads
from tests.stream.pipelines import (
    doubled,
    from_files,
    from_memory,
    noisy,
    noisy_columns,
    not_a_third,
    shards,
)
from tests.stream.stream_laws import elements, opened


class Unlucky:
    """A function that fails at some records, or at batches that hold them."""

    def __init__(self, *numbers):
        self.numbers = numbers

    def __call__(self, element, *_):
        if np.isin(element["n"], self.numbers).any():
            raise LookupError(f"{self.numbers} again")
        return element


def unlucky_13(element, *_):
    return Unlucky(13)(element)


def failure_of(stream):
    with pytest.raises(UserFunctionFailed) as failure:
        list(stream)
    return failure.value


STAGES = {
    "map": lambda stream: stream.map(unlucky_13),
    "filter": lambda stream: stream.filter(unlucky_13),
    "random_map": lambda stream: stream.random_map(unlucky_13),
}
EVERY_STAGE = pytest.mark.parametrize("stage", STAGES)


class TestAFailingFunction:
    @EVERY_STAGE
    @pytest.mark.parametrize("shuffled", [False, True])
    def test_is_named_with_its_stage_and_the_record(self, stage, shuffled):
        source = from_memory(500).shuffle(seed=2) if shuffled else from_memory(500)
        failure = failure_of(STAGES[stage](source))
        assert (failure.stage, failure.function, failure.where) == (
            stage,
            "unlucky_13",
            "record 13 of epoch 0",
        )
        assert str(failure) == (
            f"`{stage}` called unlucky_13 on record 13 of epoch 0: LookupError: (13,) again"
        )

    @EVERY_STAGE
    def test_is_named_with_the_epoch(self, stage):
        stream = STAGES[stage](from_memory(20).repeat(3).skip(20))
        assert failure_of(stream).where == "record 13 of epoch 1"
        assert failure_of(STAGES[stage](from_memory(20)).epoch(7)).where == "record 13 of epoch 7"

    @EVERY_STAGE
    def test_has_its_own_exception_as_the_cause(self, stage):
        cause = failure_of(STAGES[stage](from_memory(20))).__cause__
        assert isinstance(cause, LookupError)
        # the traceback leads into the user's code
        tracebacks = traceback_names(cause)
        assert "unlucky_13" in tracebacks

    def test_of_one_of_several_streams_is_named_with_it(self):
        stream = ab.concat([from_memory(5), from_memory(20)]).map(unlucky_13)
        assert failure_of(stream).where == "record 13 of stream 1 of epoch 0"

    def test_of_a_batch_names_some_of_its_records(self):
        stream = from_memory(20).batch(5).map(unlucky_13)
        assert failure_of(stream).where == "5 records of epoch 0 (numbers 10, 11, 12, …)"
        stream = from_memory(20).repeat(2).skip(18).batch(3).map(Unlucky(0))
        failure = failure_of(stream)
        assert failure.where == "3 records of epoch 0 and 1 (numbers 18, 19, 0)"
        assert failure.function == "Unlucky"

    def test_of_columns_names_some_of_their_records(self):
        failure = failure_of(from_memory(20).skip(10).map(unlucky_13, batched=True))
        assert failure.where == "10 records of epoch 0 (numbers 10, 11, 12, …)"

    def test_that_stops_iterating_is_a_failure_and_no_end(self):
        def stop(_):
            raise StopIteration

        for stream in [
            from_memory(4).map(stop),
            from_memory(4).filter(stop),
            from_memory(4).batch(2).map(stop),
        ]:
            assert "StopIteration" in str(failure_of(stream))

    def test_fails_again_when_the_iterator_is_asked_again(self):
        iterator = opened(from_memory(20).batch(4).map(unlucky_13))
        for _ in range(3):
            next(iterator)
        for _ in range(2):
            with pytest.raises(UserFunctionFailed):
                next(iterator)

    def test_leaves_the_state_behind_the_last_element_that_came(self):
        flaky = Unlucky(13)
        iterator = opened(from_memory(20).batch(4).map(flaky))
        seen = elements(itertools.islice(iterator, 3))
        with pytest.raises(UserFunctionFailed):
            next(iterator)
        flaky.numbers = ()
        assert seen + elements(iterator) == elements(from_memory(20).batch(4))

    def test_can_be_sent_to_another_process(self):
        failure = failure_of(from_memory(20).map(unlucky_13))
        assert str(pickle.loads(pickle.dumps(failure))) == str(failure)


def traceback_names(error):
    names, at = [], error.__traceback__
    while at is not None:
        names.append(at.tb_frame.f_code.co_name)
        at = at.tb_next
    return names


def many(compression=None):
    """More records than are read ahead of anybody who takes a few."""
    return from_files(compression, (2500, 2500))


# everything that works ahead, alone and together
BUSY = {
    "files": many,
    "shuffled files": lambda: many().shuffle(seed=1).batch(2),
    "packed files": lambda: many("GZIP"),
    "a map": lambda: from_memory(50_000).map(doubled),
    "columns": lambda: from_memory(50_000).map(doubled, batched=True).batch(3),
    "maps on maps": lambda: many().map(doubled).random_map(noisy).batch(2).map(doubled).repeat(),
    "a filter": lambda: many().filter(not_a_third).repeat(),
    "prefetch": lambda: many().batch(2).prefetch(3).repeat().prefetch(2),
    "a mix": lambda: ab.mix([many().repeat(), many().shuffle().map(doubled).repeat()]),
    "one behind the other": lambda: ab.concat([many().prefetch(), many().map(doubled)]).repeat(),
    "prefetched maps of a mix": lambda: (
        ab.mix([many().repeat(), many().map(doubled).repeat()]).batch(2).map(doubled).prefetch(2)
    ),
}
EVERY_BUSY_STREAM = pytest.mark.parametrize("stream", BUSY.values(), ids=BUSY)


@EVERY_BUSY_STREAM
class TestNoThreadIsLeftBehind:
    def test_by_a_consumer_that_stops_in_the_middle(self, stream):
        for at, _ in enumerate(stream()):
            if at == 3:
                assert our_threads()
                break
        check_no_thread_is_left()

    def test_by_an_iterator_that_is_dropped(self, stream):
        iterator = iter(stream())
        next(iterator)
        del iterator
        check_no_thread_is_left()

    def test_by_an_iterator_that_never_began(self, stream):
        iter(stream())
        check_no_thread_is_left()

    def test_by_an_iterator_that_is_closed_and_kept(self, stream):
        iterator = iter(stream())
        next(iterator)
        iterator.close()
        check_no_thread_is_left()

    def test_by_a_consumer_that_raises_while_the_exception_is_kept(self, stream):
        def consume():
            for _ in stream():
                raise KeyError("a consumer's own mistake")

        with pytest.raises(KeyError) as kept:
            consume()
        check_no_thread_is_left()
        assert kept.value.__traceback__ is not None

    def test_by_a_failing_function_while_the_exception_and_the_iterator_are_kept(self, stream):
        def fail(_):
            raise LookupError("always")

        for failing in [stream().map(fail), stream().filter(fail), stream().map(fail).prefetch(2)]:
            iterator = iter(failing)
            with pytest.raises(UserFunctionFailed) as kept:
                next(iterator)
            check_no_thread_is_left()
            assert kept.value.__traceback__ is not None

    def test_by_an_iterator_that_is_set_elsewhere(self, stream):
        iterator = iter(stream())
        state = iterator.get_state()
        next(iterator)
        iterator.set_state(state)
        check_no_thread_is_left()
        next(iterator)
        iterator.close()


@pytest.mark.parametrize("stream", [from_files().shuffle(), from_files().map(doubled).batch(3).prefetch(1)])
def test_no_thread_is_left_behind_a_stream_that_ended(stream):
    iterator = iter(stream)
    list(iterator)
    check_no_thread_is_left()
    assert list(iterator) == []


INTERRUPTED = {
    "reading": "files().shuffle(seed=1).batch(2).repeat()",
    "reading what never matches": "files().filter(lambda _: False).repeat(10**9)",
    "a slow consumer": "files().batch(2).repeat()",
    "a slow map": "files().map(slow).batch(2).repeat()",
    "a slow map of columns": "files().map(slow, batched=True).repeat()",
    "a slow filter": "files().filter(slow).repeat()",
    "prefetching": "files().map(slow).batch(2).prefetch(4).repeat()",
    "a slow mix": "ab.mix([files().map(slow).repeat(), files().repeat()]).prefetch(2)",
}
INTERRUPTED_PROGRAM = """
import signal, sys, threading, time
import anybatch as ab
from tests.stream.pipelines import FEATURES

def files():
    return ab.read(sys.argv[1:], FEATURES)

def slow(one):
    time.sleep(0.02)
    return one

# whoever starts tests in the background may have them ignore it
signal.signal(signal.SIGINT, signal.default_int_handler)
stream = {stream}
threading.Timer(0.3, lambda: print("at work", flush=True)).start()
for _ in stream:
    time.sleep({pause})
"""


@pytest.mark.parametrize("what", INTERRUPTED)
def test_ctrl_c_ends_at_once(what):
    pause = 5 if what == "a slow consumer" else 0
    code = INTERRUPTED_PROGRAM.format(stream=INTERRUPTED[what], pause=pause)
    program = [sys.executable, "-c", code, *shards(sizes=(2500, 2500))]
    with subprocess.Popen(
        program, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout.readline() == "at work\n", run.stderr.read()
        run.send_signal(signal.SIGINT)
        start = time.monotonic()
        try:
            _, err = run.communicate(timeout=20)
        finally:
            run.kill()
    assert time.monotonic() - start < 2
    assert run.returncode == -signal.SIGINT
    assert err.rstrip().endswith("KeyboardInterrupt")


ROOT = Path(__file__).parents[2]

PICKLED = {
    "arrays": from_memory(20).shuffle(seed=1).map(doubled).batch(3),
    "files": from_files().shuffle(seed=1).filter(not_a_third).random_map(noisy).batch(3).prefetch(2),
    "several": ab.mix(
        [ab.concat([from_files(), from_files().skip(3)]), from_files().repeat(2)], [1, 2], seed=4
    ),
    "everything else": (
        from_files()
        .skip(1)
        .take(9)
        .shard(2, 0)
        .epoch(3)
        .random_map(noisy_columns, seed=2, batched=True)
        .batch(2, drop_remainder=True)
        .as_supervised({"a": "x"}, "n")
        .limit_memory("64MiB")
        .repeat(2)
    ),
}


@pytest.mark.parametrize("stream", PICKLED.values(), ids=PICKLED)
def test_a_stream_pickles_as_a_description(stream):
    fresh = pickle.dumps(stream)
    expected = elements(stream)
    iterator = iter(stream)
    used = pickle.dumps(stream)
    state = iterator.get_state()
    for text in [fresh, used]:
        again = pickle.loads(text)
        assert repr(again) == repr(stream)
        assert elements(again) == expected
        iter(again).set_state(state)


@pytest.mark.parametrize("stream", PICKLED.values(), ids=PICKLED)
def test_an_iterator_says_what_to_pickle_instead(stream):
    with pytest.raises(TypeError, match=r"pickle the stream, and get_state\(\)"):
        pickle.dumps(iter(stream))


FORKED = """
import multiprocessing, sys
import anybatch as ab
from tests.stream.pipelines import FEATURES, doubled, from_memory
from tests.stream.stream_laws import elements

files = ab.read(sys.argv[1:], FEATURES)
STREAMS = [
    from_memory(30).shuffle(seed=1).batch(4),
    files.shuffle(seed=1).batch(2),
    files,
    files.map(doubled).batch(2),
    files.batch(2).prefetch(3),
    ab.mix([files.prefetch(), files.map(doubled)]).batch(2).map(doubled, batched=True).prefetch(1),
]


def child(stream, iterator, expected, answers):
    try:
        next(iterator)
        told = "it went on"
    except RuntimeError as error:
        told = str(error)
    del iterator
    answers.put((told, elements(stream) == expected, elements(list(stream)) == expected))


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    for stream in STREAMS:
        expected, iterator = elements(stream), iter(stream)
        next(iterator)
        answers = context.SimpleQueue()
        forked = context.Process(target=child, args=(stream, iterator, expected, answers))
        forked.start()
        told, *right = answers.get()
        assert told == "this iterator belongs to another process; iterate the stream anew", told
        assert right == [True, True]
        forked.join(10)
        assert forked.exitcode == 0, forked.exitcode
        # and the parent goes on as if nothing had happened
        assert elements(iterator) == expected[1:]
        print("fine")
"""


def test_a_stream_survives_a_fork_and_an_iterator_says_that_it_does_not():
    # in a program of its own: TensorFlow, if other tests have loaded it, does not survive forks
    program = [sys.executable, "-c", FORKED, *shards()]
    run = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "fine\n" * 6, "")
