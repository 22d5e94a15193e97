"""What is inferred is what the records hold, and reads all of it."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import strategies as st

import anybatch as ab
from anybatch.errors import AnybatchWarning, BadFeature, NotExamples, NothingToRead, ShardsDisagree
from tests.records.contents import Contents, as_written, example, sequence_example
from tests.records.laws import law
from tests.shard_files import write_shard

DTYPES = ("bytes", "float32", "int64")
ABSENT = "absent"
ONE, TWO, HALF, WORD = np.array([1]), np.array([1, 2]), np.array([0.5], "<f4"), [b"word"]


@dataclass(frozen=True)
class Plan:
    """How one feature is in one shard: always with so many values, with any number, or not at all."""

    count: int | None
    holes: bool

    def values(self, dtype, contents):
        """Return one record's values, None without a kind, or `ABSENT`."""
        if self.holes and contents.chance(3):
            return None if contents.chance(2) else ABSENT
        return contents.values(dtype, contents.count(3) if self.count is None else self.count)


plans = st.builds(Plan, st.none() | st.sampled_from([1, 2, 3, 0]), st.booleans())
seeds = st.integers(0, 2**32)


def shards_of(names, per_shard):
    """Return strategies of a dtype for each name and a plan for each name and shard."""
    plan_of_shard = st.fixed_dictionaries(dict.fromkeys(names, plans | st.none()))
    alike = plan_of_shard.flatmap(lambda plan: st.sampled_from([[plan], [plan, plan], [plan] * 3]))
    return st.tuples(
        st.fixed_dictionaries(dict.fromkeys(names, st.sampled_from(DTYPES))),
        alike | st.lists(plan_of_shard, min_size=1, max_size=3),
        st.integers(1, per_shard),
    )


def fill(plan, dtypes, contents):
    values = {name: one.values(dtypes[name], contents) for name, one in plan.items() if one is not None}
    return {name: one for name, one in values.items() if one is not ABSENT}


def feature_of(dtype, count):
    if not count:
        return ab.Ragged(dtype)
    shape = () if count == 1 else (count,)
    return ab.Bytes(shape=shape) if dtype == "bytes" else ab.Numbers(dtype, shape)


def summary(shard, name):
    """Return how many values every record of a shard has, None if that differs, `ABSENT` if none has any."""
    counts = {None if record.get(name) is None else len(record[name]) for record in shard}
    if counts == {None}:
        return ABSENT
    return counts.pop() if len(counts) == 1 else None


def truth(shards, dtypes):
    """Return the feature of every name, and the names about which the shards differ."""
    features, differing = {}, set()
    for name in sorted({name for shard in shards for record in shard for name in record}):
        summaries = {summary(shard, name) for shard in shards}
        count = summaries.pop() if len(summaries) == 1 else None
        features[name] = feature_of(dtypes[name], count)
        differing |= {name} if summaries else set()
    return features, differing


def write_shards(folder, shards, message=example):
    paths = [str(folder / f"{number}.tfrecord") for number in range(len(shards))]
    for path, records in zip(paths, shards, strict=True):
        write_shard(path, [message(record).SerializeToString() for record in records])
    return paths


def of_two_maps(record):
    return sequence_example(*record)


def inferred(paths):
    """Return the features and the names that were warned about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        features = ab.infer_features(paths)
    assert all(warning.category is AnybatchWarning for warning in caught)
    return features, {str(warning.message).split("`")[1] for warning in caught}


@law(shards_of(["a", "b", "é"], per_shard=8), seeds, examples=200, soak=10_000)
def test_features_are_inferred_as_the_records_have_them(folder, dataset, seed):
    dtypes, plans_of_shards, per_shard = dataset
    contents = Contents(seed)
    shards = [[fill(plan, dtypes, contents) for _ in range(per_shard)] for plan in plans_of_shards]
    shards = without_the_empty(shards)
    if not any(record for shard in shards for record in shard):
        return
    assert inferred(write_shards(folder, shards)) == truth(shards, dtypes)


def without_the_empty(shards):
    """Return the records without features that have no kind anywhere: of those nothing can be inferred."""
    known = {
        name for shard in shards for record in shard for name, values in record.items() if values is not None
    }
    return [
        [{name: record[name] for name in record if name in known} for record in shard] for shard in shards
    ]


def bits(values):
    """Return values as a flat list that tells NaNs apart."""
    if isinstance(values, bytes | list):
        return [values] if isinstance(values, bytes) else values
    flat = np.asarray(values).reshape(-1)
    return flat.view("<u4").tolist() if flat.dtype == "float32" else flat.tolist()


def expected_bits(record, name):
    values = record.get(name)
    return [] if values is None else bits(values)


@law(shards_of(["a", "b", ""], per_shard=8), seeds, examples=100, soak=10_000)
def test_what_was_written_is_read_back_without_being_described(folder, dataset, seed):
    dtypes, plans_of_shards, per_shard = dataset
    contents = Contents(seed)
    records = [fill(plan, dtypes, contents) for plan in plans_of_shards for _ in range(per_shard)]
    (records,) = without_the_empty([records])
    if not any(records):
        return
    shards = min(2, len(records))
    paths = ab.write(
        folder / "all",
        [{name: as_written(values) for name, values in record.items()} for record in records],
        shards=shards,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AnybatchWarning)
        stream = ab.read(paths)
    for record, element in zip(records, stream, strict=True):
        for name, values in element.items():
            assert bits(values) == expected_bits(record, name)
        assert set(record) <= set(element)


@dataclass(frozen=True)
class ListPlan:
    """How one feature list is: what each step holds, and how many steps there are."""

    step: Plan
    longest: int
    may_be_missing: bool

    def steps(self, dtype, contents):
        """Return the steps of one record, or None if it has no such list."""
        if self.may_be_missing and contents.chance(3):
            return None
        values = [self.step.values(dtype, contents) for _ in range(contents.count(self.longest))]
        return [None if one is ABSENT else one for one in values]


list_plans = st.tuples(st.sampled_from(DTYPES), st.builds(ListPlan, plans, st.integers(1, 4), st.booleans()))


def list_feature(dtype, lists):
    """Return what reads all these lists of steps; None stands for a list that is not there."""
    counts = {0 if step is None else len(step) for steps in lists if steps is not None for step in steps}
    return ab.Sequence(
        feature_of(dtype, counts.pop() if len(counts) == 1 else None), allow_missing=None in lists
    )


def step_bits(element):
    """Return the values of each step of one record."""
    return [bits(step) for step in element]


@law(
    st.fixed_dictionaries({"a": list_plans, "b": list_plans}),
    st.integers(1, 6),
    seeds,
    examples=150,
    soak=10_000,
)
def test_feature_lists_are_inferred_and_read_as_the_records_have_them(folder, named, count, seed):
    contents = Contents(seed)
    records = [
        {name: plan.steps(dtype, contents) for name, (dtype, plan) in named.items()} for _ in range(count)
    ]
    lists = {name: [record[name] for record in records] for name in named}
    if not all(any(step is not None for steps in some for step in steps or []) for some in lists.values()):
        return  # of a list without any value nothing can be inferred
    stored = [
        ({"id": ONE}, {name: one for name, one in record.items() if one is not None}) for record in records
    ]
    paths = write_shards(folder, [stored], of_two_maps)
    expected = {name: list_feature(dtype, lists[name]) for name, (dtype, _) in named.items()}
    assert ab.infer_features(paths) == expected | {"id": ab.Numbers("int64")}
    for record, element in zip(records, ab.read(paths), strict=True):
        for name, steps in record.items():
            wanted = [expected_bits({"step": step}, "step") for step in steps or []]
            assert step_bits(element[name]) == wanted


def test_shards_of_different_kinds_are_an_error_that_names_both(tmp_path):
    paths = write_shards(tmp_path, [[{"x": ONE}], [{"x": HALF}]])
    with pytest.raises(ShardsDisagree) as disagreement:
        ab.read(paths)
    assert disagreement.value.args == ("x", paths[0], "int64", paths[1], "float32")


def test_records_of_different_kinds_in_one_shard_are_an_error_too(tmp_path):
    paths = write_shards(tmp_path, [[{"x": ONE}, {"x": WORD}]])
    with pytest.raises(ShardsDisagree, match="`x` is of one kind"):
        ab.read(paths)


def test_a_context_feature_and_a_feature_list_of_one_name_are_an_error(tmp_path):
    """One column can hold one of them only, and the other would be lost without a word."""
    (path,) = write_shards(tmp_path, [[({"x": ONE}, {"x": [HALF]})]], of_two_maps)
    with pytest.raises(ShardsDisagree, match="`x` is in the context"):
        ab.read(path)
    (record,) = ab.read(path, {"x": ab.Sequence(ab.Numbers()), "context x": ab.Ragged("int64", key="x")})
    assert (record["x"].tolist(), record["context x"].tolist()) == ([0.5], [1])


def test_a_context_feature_here_and_a_feature_list_there_is_an_error(tmp_path):
    paths = write_shards(tmp_path, [[({"x": ONE}, {})], [({}, {"x": [ONE]})]], of_two_maps)
    with pytest.raises(ShardsDisagree) as disagreement:
        ab.read(paths)
    assert disagreement.value.args == ("x", paths[0], "int64", paths[1], "a feature list of int64")


@pytest.mark.parametrize(
    ("shards", "said"),
    [
        ([[{"x": ONE}], [{"x": TWO}]], ["1 values", "2 values"]),
        ([[{"x": ONE}, {"x": TWO}], [{"x": TWO}]], ["1 to 2 values", "2 values"]),
        ([[{"x": ONE}], [{"x": ONE}, {}]], ["1 values", "sometimes missing"]),
        ([[{"x": ONE, "y": ONE}], [{"y": ONE}]], ["has values in", "and none in"]),
        ([[{"x": ONE}], [{"x": None}]], ["has values in", "and none in"]),
    ],
)
def test_shards_of_different_counts_are_a_warning_and_ragged(shards, said, tmp_path):
    paths = write_shards(tmp_path, shards)
    with pytest.warns(AnybatchWarning, match="feature `x`") as warned:
        features = ab.infer_features(paths)
    assert features["x"] == ab.Ragged("int64")
    text = str(warned[0].message)
    assert all(one in text for one in [*said, *paths])


def test_a_feature_that_never_has_a_kind_is_an_error_that_names_it(tmp_path):
    with pytest.raises(BadFeature, match="`x`"):
        ab.read(write_shards(tmp_path, [[{"x": None, "y": ONE}]]))


def test_an_empty_shard_says_nothing(tmp_path):
    paths = write_shards(tmp_path, [[], [{"x": ONE}], []])
    assert inferred(paths) == ({"x": ab.Numbers("int64")}, set())
    with pytest.raises(NothingToRead):
        ab.infer_features(paths[0])


def test_what_is_no_example_is_an_error_that_tells_how_many(tmp_path):
    sound = example({"x": ONE}).SerializeToString()
    path = write_shard(tmp_path / "x.tfrecord", [sound, b"no message", sound])
    with pytest.raises(NotExamples, match="1 of the first 3 records"):
        ab.infer_features(path)
    with pytest.raises(NotExamples, match="no features"):
        ab.infer_features(write_shard(tmp_path / "y.tfrecord", [b""]))
