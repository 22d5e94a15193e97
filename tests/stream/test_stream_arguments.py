"""Bad arguments get one clear sentence, at once."""

import re

import numpy as np
import pytest

import anybatch as ab
from anybatch.errors import NoFiles, UserFunctionFailed
from anybatch.stream.elsewhere import INSTEAD
from tests.stream.pipelines import doubled, from_files, from_memory, noisy, not_a_third

STREAM = from_memory(10)

AT_ONCE = {
    "batch(0)": (lambda: STREAM.batch(0), "batch is 0; it is a whole number from 1 on"),
    "batch(-1)": (lambda: STREAM.batch(-1), "batch is -1; it is a whole number from 1 on"),
    "batch(2.5)": (lambda: STREAM.batch(2.5), "batch is 2.5; it is a whole number from 1 on"),
    "batch('4')": (lambda: STREAM.batch("4"), "batch is '4'; it is a whole number from 1 on"),
    "batch(True)": (lambda: STREAM.batch(True), "batch is True; it is a whole number from 1 on"),
    "batch twice": (lambda: STREAM.batch(2).batch(2), "the stream is batched already; batch once"),
    "batch twice with a map between": (
        lambda: STREAM.batch(2).map(doubled).repeat(2).batch(2),
        "the stream is batched already; batch once",
    ),
    "take(-2)": (lambda: STREAM.take(-2), "take is -2; it is a whole number from 0 on"),
    "take(None)": (lambda: STREAM.take(None), "take is None; it is a whole number from 0 on"),
    "skip(-2)": (lambda: STREAM.skip(-2), "skip is -2; it is a whole number from 0 on"),
    "repeat(-2)": (lambda: STREAM.repeat(-2), "repeat is -2; it is a whole number from 0 on"),
    "repeat(1.5)": (lambda: STREAM.repeat(1.5), "repeat is 1.5; it is a whole number from 0 on"),
    "epoch(-1)": (lambda: STREAM.epoch(-1), "epoch is -1; it is a whole number from 0 on"),
    "shard(2, 2)": (lambda: STREAM.shard(2, 2), "shard 2 of 2 does not exist; the last one is 1"),
    "shard(2, -1)": (lambda: STREAM.shard(2, -1), "shard's index is -1; it is a whole number from 0 on"),
    "shard(0, 0)": (lambda: STREAM.shard(0, 0), "shard's count is 0; it is a whole number from 1 on"),
    "prefetch(-2)": (lambda: STREAM.prefetch(-2), "prefetch is -2; it is a whole number from 0 on"),
    "shuffle(seed='a')": (lambda: STREAM.shuffle(seed="a"), "the seed is 'a'; it is a whole number"),
    "random_map(seed=0.5)": (
        lambda: STREAM.random_map(noisy, seed=0.5),
        "the seed is 0.5; it is a whole number",
    ),
    "mix(seed=None)": (lambda: ab.mix([STREAM], seed=None), "the seed is None; it is a whole number"),
    "as_supervised(None)": (
        lambda: STREAM.as_supervised(None),
        "as_supervised needs the name of x; y and sample_weight may be left out",
    ),
    "no streams": (lambda: ab.concat([]), "several streams as one need at least one"),
    "batched and not": (
        lambda: ab.mix([STREAM, STREAM.batch(2)]),
        "some of the streams are batched and others are not; batch all of them, or what comes out",
    ),
    "limit_memory('much')": (lambda: STREAM.limit_memory("much"), None),
    "on_corrupt='ignore'": (
        lambda: ab.read("x", on_corrupt="ignore"),
        'on_corrupt is \'ignore\'; it can be "raise" or "skip"',
    ),
    "max_corrupt without skip": (
        lambda: ab.read("x", max_corrupt=3),
        'max_corrupt counts what is left out, so it needs on_corrupt="skip"',
    ),
    "max_corrupt='3'": (
        lambda: ab.read("x", on_corrupt="skip", max_corrupt="3"),
        "max_corrupt is '3'; it is a count, or a fraction below 1",
    ),
    **{
        f"mix weights {weights}": (
            lambda weights=weights: ab.mix([STREAM, STREAM], weights),
            f"mix takes one weight from 0 on per stream; got {weights!r} for 2 streams",
        )
        for weights in (
            [1],
            [1, 2, 3],
            [0, 0],
            [1, -1],
            [1, float("nan")],
            [1, float("inf")],
            ["a", 1],
            [None, 1],
        )
    },
}


@pytest.mark.parametrize("case", AT_ONCE)
def test_a_bad_argument_gets_one_clear_sentence_at_once(case):
    call, sentence = AT_ONCE[case]
    with pytest.raises(ValueError) as failure:  # noqa: PT011 - the whole sentence is compared
        call()
    assert "\n" not in str(failure.value)
    assert sentence is None or str(failure.value) == sentence


@pytest.mark.parametrize(
    ("stream", "stage"),
    [
        (STREAM.filter(not_a_third), "filter(not_a_third)"),
        (STREAM.batch(3), "batch(3)"),
        (STREAM.repeat(2), "repeat(2)"),
        (from_files("GZIP"), "read 3 shards"),
        (ab.concat([STREAM, STREAM]), "concat(2 streams)"),
    ],
)
def test_shuffling_what_has_no_numbers_says_what_to_do(stream, stage):
    sentence = f"an exact shuffle needs records that have numbers, and behind `{stage}"
    with pytest.raises(ValueError, match=re.escape(sentence)):
        stream.shuffle(seed=1)


class TestColumnsByName:
    @pytest.mark.parametrize(
        "stream", [STREAM, STREAM.batch(2), STREAM.map(doubled), STREAM.map(doubled).batch(3)]
    )
    @pytest.mark.parametrize("names", [("y",), ("x", "y"), (["n", "y"],), ({"a": "y"}, "n"), ("x", "n", "y")])
    def test_an_unknown_one_is_named_beside_those_there_are(self, stream, names):
        with pytest.raises(ValueError, match=r"^as_supervised wants 'y'; there are 'n', 'x'$"):
            list(stream.as_supervised(*names))

    @pytest.mark.parametrize("arrays", [np.arange(4), (np.arange(4), np.arange(4))])
    def test_there_have_to_be_names(self, arrays):
        stream = ab.from_arrays(arrays)
        for one in [stream, stream.batch(2)]:
            with pytest.raises(
                ValueError, match=r"^as_supervised takes columns by name, and these have none"
            ):
                list(one.as_supervised("x"))


@pytest.mark.parametrize(
    ("paths", "told"),
    [
        ([], "the list of files is empty"),
        (iter(()), "the list of files is empty"),
        ("gs://bucket/train.tfrecord", "copy them here, or mount them as a folder"),
        ("s3://bucket/*.tfrecord", "copy them here, or mount them as a folder"),
        ("~/no-such-folder/*.tfrecord", "expanduser() makes a path of it"),
    ],
)
def test_files_that_cannot_be_found_come_with_their_own_way_out(paths, told):
    with pytest.raises(NoFiles, match=re.escape(told)):
        ab.read(paths)


@pytest.mark.parametrize("name", INSTEAD)
def test_a_word_of_tf_data_that_is_not_here_says_what_is(name):
    assert not hasattr(STREAM, name)
    with pytest.raises(AttributeError, match=re.escape(f"here it is {INSTEAD[name]}")):
        getattr(STREAM, name)


def test_a_word_that_nobody_has_is_told_as_usual():
    with pytest.raises(AttributeError, match=r"^'Stream' object has no attribute 'nonsense'$"):
        STREAM.nonsense  # noqa: B018
    with pytest.raises(AttributeError) as failure:
        ab.Number  # noqa: B018
    # by these two Python proposes `Numbers`
    assert (failure.value.name, failure.value.obj) == ("Number", ab)


@pytest.mark.parametrize("operation", ["map", "random_map", "filter"])
@pytest.mark.parametrize("function", [3, None, "f"])
def test_what_is_no_function_is_refused_where_it_is_passed(operation, function):
    sentence = f"{operation} takes a function; got a value of type {type(function).__name__}"
    with pytest.raises(TypeError, match=f"^{sentence}$"):
        getattr(STREAM, operation)(function)


@pytest.mark.parametrize(
    "stream",
    [
        STREAM.map(lambda record: None),
        STREAM.map(lambda record: None).batch(2),
        STREAM.map(lambda columns: None, batched=True).batch(2),
        STREAM.batch(2).map(lambda batch: None),
        STREAM.random_map(lambda record, rng: None).batch(2),
        STREAM.random_map(lambda columns, seeds: None, batched=True).batch(2),
    ],
)
def test_a_forgotten_return_is_told(stream):
    with pytest.raises(UserFunctionFailed, match="it returned None; return what becomes of the record"):
        next(iter(stream))


@pytest.mark.parametrize("named", [False, True])
def test_a_list_of_different_things_is_told_to_be_a_tuple(named):
    def several(record):
        made = [np.zeros(3), 1]
        return {"both": made} if named else made

    with pytest.raises(ValueError, match=r"a list that a function returned .* a tuple or a mapping"):
        next(iter(STREAM.map(several).batch(2)))


class TestAFunctionOfColumns:
    def test_returns_as_many_rows_as_it_was_given(self):
        with pytest.raises(
            UserFunctionFailed, match="it was given 10 records and returned 9; filter drops records"
        ):
            list(STREAM.map(lambda columns: {"n": columns["n"][1:]}, batched=True))

    def test_returns_equally_many_rows_in_every_column(self):
        with pytest.raises(UserFunctionFailed, match="equally many rows; these have 9, 10"):
            list(STREAM.map(lambda columns: {"n": columns["n"][1:], "x": columns["x"]}, batched=True))

    @pytest.mark.parametrize("made", [3, [1, 2], "text"])
    def test_returns_columns(self, made):
        with pytest.raises(UserFunctionFailed, match=r"a column is an array with rows|equally many rows"):
            list(STREAM.map(lambda _: made, batched=True))

    def test_may_return_another_number_of_rows_for_a_whole_batch(self):
        stream = STREAM.batch(5).map(lambda batch: {"n": batch["n"][:2]})
        assert [len(batch["n"]) for batch in stream] == [2, 2]


class TestLength:
    def test_is_unknown_behind_a_filter(self):
        for stream in [
            STREAM.filter(not_a_third),
            STREAM.filter(not_a_third).batch(2),
            STREAM.filter(not_a_third).take(3),
        ]:
            with pytest.raises(TypeError, match="known only after reading them"):
                len(stream)

    def test_is_no_number_for_ever(self):
        for stream in [STREAM.repeat(), STREAM.batch(3).repeat(), STREAM.repeat().skip(2)]:
            with pytest.raises(TypeError, match="repeats for ever has no length"):
                len(stream)
        assert len(STREAM.repeat().take(25)) == 25
        assert len(STREAM.repeat().batch(4).take(3)) == 3


TWO_NAMES = {
    "batch": [{"n": 4}, {"batch_size": 4}],
    "take": [{"n": 4}, {"count": 4}],
    "skip": [{"n": 4}, {"count": 4}],
    "repeat": [{"n": 2}, {"count": 2}],
    "prefetch": [{"n": 2}, {"buffer_size": 2}],
    "filter": [{"fn": not_a_third}, {"predicate": not_a_third}],
    "map": [{"fn": doubled}, {"map_func": doubled}],
    "shard": [{"count": 2, "index": 1}, {"num_shards": 2, "index": 1}],
}


OF_ANOTHER_KIND = {
    "read(3)": (lambda: ab.read(3), "the files are 3; name them by a path, a glob or a list of those"),
    "read([3])": (lambda: ab.read([3]), "one of the files is 3; name it by a path or a glob"),
    "concat(stream)": (lambda: ab.concat(STREAM), "several streams as one come as a list; got one stream"),
    "mix([3])": (lambda: ab.mix([3]), "one of the streams is a value of type int"),
    "as_supervised(3)": (lambda: STREAM.as_supervised(3), "a list or a mapping of names; got 3"),
    "as_supervised(['n'], 3)": (lambda: STREAM.as_supervised(["n"], 3), "a mapping of names; got 3"),
    "cache(3)": (lambda: STREAM.cache(3), "cache lies in a folder, given by its path; got 3"),
    "a mask": (
        lambda: ab.from_arrays(np.ma.array([1, 2, 3], mask=[0, 1, 0])),
        "an array has a mask, which would be lost, with 1 of 3 values under it; pass array.filled(value)",
    ),
}


@pytest.mark.parametrize("case", OF_ANOTHER_KIND)
def test_arguments_of_another_kind_are_named(case):
    call, told = OF_ANOTHER_KIND[case]
    with pytest.raises(TypeError, match=re.escape(told)):
        call()


@pytest.mark.parametrize("operation", ["take", "skip", "batch", "epoch", "prefetch", "repeat"])
def test_a_number_that_is_too_large_is_named(operation):
    with pytest.raises(ValueError, match=rf"{operation} is {2**70}; the largest whole number here"):
        getattr(STREAM, operation)(2**70)


def test_a_cache_in_a_file_is_refused_at_once(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="file` is a file; name another place"):
        STREAM.cache(tmp_path / "file")


def test_files_can_be_named_by_bytes(tmp_path):
    (path,) = ab.write(tmp_path / "a.tfrecord", [{"x": 1}])
    assert len(ab.read(str(path).encode())) == len(ab.read([str(path).encode()])) == 1


@pytest.mark.parametrize("window", [None, "1MiB"])
def test_whole_batches_are_told_to_be_shuffled_before_and_not_in_windows(window):
    with pytest.raises(ValueError, match=r"behind `batch\(2\)` they have none; shuffle before it$"):
        STREAM.batch(2).shuffle(window=window)


@pytest.mark.parametrize("operation", TWO_NAMES)
def test_arguments_go_by_our_names_and_by_those_of_tf_data(operation):
    ours, theirs = TWO_NAMES[operation]
    call = getattr(STREAM, operation)
    assert repr(call(*ours.values())) == repr(call(**ours)) == repr(call(**theirs)) != repr(STREAM)


@pytest.mark.parametrize("operation", TWO_NAMES)
def test_an_argument_by_both_names_is_refused(operation):
    ours, theirs = TWO_NAMES[operation]
    call, (our, their) = getattr(STREAM, operation), next(zip(ours, theirs, strict=True))
    for given in [lambda: call(**ours, **{their: ours[our]}), lambda: call(*ours.values(), **theirs)]:
        with pytest.raises(TypeError, match=f"`{our}`, which tf.data calls `{their}`, once|multiple values"):
            given()


@pytest.mark.parametrize("operation", sorted(TWO_NAMES.keys() - {"repeat", "prefetch"}))
def test_an_argument_that_is_missing_is_asked_for_by_both_names(operation):
    our, their = (next(iter(names)) for names in TWO_NAMES[operation])
    with pytest.raises(TypeError, match=f"{operation} needs `{our}`, which tf.data calls `{their}`"):
        getattr(STREAM, operation)()


@pytest.mark.parametrize("stream", [STREAM, STREAM.take(0), STREAM.filter(not_a_third), STREAM.repeat()])
def test_a_stream_is_true_whatever_its_length(stream):
    assert stream
