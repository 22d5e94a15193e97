"""Streams as `tf.data` datasets and as eager tensors: the same elements, the right specs, no copies."""

import gc
import threading
import time
from collections import deque
from itertools import islice

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import assume

import anybatch as ab
from anybatch.records import BytesColumn, RaggedColumn, aligned_copy
from anybatch.stream.interop import tensorflow as interop
from anybatch.stream.structure import mapped
from tests.stream import pipelines
from tests.stream.stream_laws import law

FEATURES = {
    "x": ab.Numbers("float32", (3,)),
    "n": ab.Numbers("int64"),
    "image": ab.Raw("uint8", (2, 2, 1)),
    "name": ab.Bytes(),
    "lists": ab.Ragged("int64"),
    "words": ab.Ragged(bytes),
}
ROWS = 57


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    records = (
        {
            "x": np.array([n, 0.5, -n], np.float32),
            "n": n,
            "image": bytes([n % 7] * 4),
            "name": b"\0%d" % n * (n % 3),
            "lists": list(range(n % 5)),
            "words": [b"w" * at for at in range(n % 4)],
        }
        for n in range(ROWS)
    )
    ab.write(folder / "a.tfrecord", records, shards=3)
    made = ab.read(str(folder / "a-*"), FEATURES)
    len(made)
    return made


def told(value):
    """Return an element of either kind as nested lists with their types."""
    if isinstance(value, dict):
        return {name: told(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(map(told, value))
    if value is None:
        return None
    if isinstance(value, tf.RaggedTensor):
        return "lists", value.dtype.name, value.to_list()
    if isinstance(value, RaggedColumn):
        return "lists", _dtype_of(value), value.to_list()
    array = np.asarray(value.numpy() if isinstance(value, tf.Tensor) else value)
    return "string" if array.dtype.kind in "OSU" else array.dtype.name, array.shape, array.tolist()


def _dtype_of(column):
    while isinstance(column, RaggedColumn):
        column = column.values
    return "string" if isinstance(column, BytesColumn) else column.dtype.name


def same(dataset, stream):
    return [told(one) for one in dataset] == [told(one) for one in stream]


def test_batches_of_every_kind_of_column_arrive(stream):
    for described in (stream.batch(8), stream.shuffle(seed=1).batch(8, drop_remainder=True)):
        assert same(described.to_tf(), described)


def test_records_of_every_kind_of_column_arrive(stream):
    for described in (stream, stream.shuffle(seed=1), stream.filter(lambda one: one["n"] % 3)):
        assert same(described.to_tf(), described)


@law(pipelines.pipelines, examples=15, soak=400)
def test_any_stream_arrives(stream):
    expected = [told(one) for one in stream]
    assume(expected)
    assert [told(one) for one in stream.to_tf()] == expected


def test_specs_come_from_the_features(stream):
    assert stream.batch(8).to_tf().element_spec == {
        "x": tf.TensorSpec((None, 3), tf.float32),
        "n": tf.TensorSpec((None,), tf.int64),
        "image": tf.TensorSpec((None, 2, 2, 1), tf.uint8),
        "name": tf.TensorSpec((None,), tf.string),
        "lists": tf.RaggedTensorSpec((None, None), tf.int64, 1, tf.int64),
        "words": tf.RaggedTensorSpec((None, None), tf.string, 1, tf.int64),
    }
    dropped = stream.batch(8, drop_remainder=True).to_tf().element_spec
    assert dropped["image"] == tf.TensorSpec((8, 2, 2, 1), tf.uint8)
    assert dropped["lists"].shape.as_list() == [8, None]
    assert stream.to_tf().element_spec["lists"] == tf.TensorSpec((None,), tf.int64)
    assert stream.to_tf().element_spec["x"] == tf.TensorSpec((3,), tf.float32)


def test_ragged_columns_padded_for_keras_have_dimensions_that_vary(stream):
    described = stream.batch(8).as_supervised({"a": "x", "b": "lists"}, "n")
    inputs, label = described.to_tf().element_spec
    assert inputs == {"a": tf.TensorSpec((None, 3), tf.float32), "b": tf.TensorSpec((None, None), tf.int64)}
    assert label == tf.TensorSpec((None,), tf.int64)
    assert same(described.to_tf(), described)


def test_nothing_is_read_where_features_say_the_specs(tmp_path):
    path = tmp_path / "a.tfrecord"
    ab.write(path, [{"n": 1}])
    described = ab.read(path, {"n": ab.Numbers("int64")}).shuffle().batch(2)
    path.unlink()
    assert described.to_tf().element_spec == {"n": tf.TensorSpec((None,), tf.int64)}


def test_specs_behind_functions_come_from_the_first_elements(stream):
    described = stream.batch(8).map(
        lambda batch: (batch["x"].sum(axis=1), {"pad": batch["lists"].to_padded()})
    )
    # the first batches are padded alike; that others need not be shows in batches of one
    assert described.to_tf().element_spec == (
        tf.TensorSpec((None,), tf.float32),
        {"pad": tf.TensorSpec((None, None), tf.int64)},
    )
    assert same(described.to_tf(), described)
    fixed = stream.batch(8, drop_remainder=True).map(lambda batch: batch["x"] @ batch["x"].T)
    assert fixed.to_tf().element_spec == tf.TensorSpec((8, None), tf.float32)


def test_records_of_one_length_by_chance_are_lists_for_tensorflow_too():
    lengths = np.r_[np.full(12, 3), np.arange(20)]
    described = ab.from_arrays(lengths).map(np.arange).batch(4)
    dataset = described.to_tf()
    assert dataset.element_spec == tf.RaggedTensorSpec((None, None), tf.int64, 1, tf.int64)
    arrived = [row for batch in dataset for row in batch.to_list()]
    assert arrived == [list(range(length)) for length in lengths]


def test_a_dimension_that_varies_later_is_named_with_the_remedy():
    lengths = np.r_[np.full(40, 3), 5]
    described = ab.from_arrays(lengths).batch(1).map(lambda n: {"list": np.zeros((1, n[0]))})
    with pytest.raises(tf.errors.OpError, match=r"`list` is float64 of shape \(1, 5\).*element_spec"):
        list(described.to_tf())
    spec = {"list": tf.TensorSpec((None, None), tf.float64)}
    assert same(described.to_tf(element_spec=spec), described)
    assert described.to_tf(element_spec=spec).element_spec == spec


def test_a_user_can_say_the_specs_of_records():
    described = ab.from_arrays(np.arange(2000) // 500).map(lambda n: {"list": np.arange(n), "n": n})
    spec = {"list": tf.TensorSpec((None,), tf.int64), "n": tf.TensorSpec((), tf.int64)}
    made = described.to_tf(element_spec=spec)
    assert made.element_spec == spec
    assert same(made, described)


def test_arrays_tuples_scalars_and_parts_left_out_arrive():
    x, y = np.arange(20.0).reshape(10, 2), np.arange(10)
    text = ab.from_arrays(np.array(["a", "", "ccc"]))
    assert [one.numpy() for one in text.to_tf()] == [b"a", b"", b"ccc"]
    for described in (
        ab.from_arrays(x).batch(4),
        ab.from_arrays(y),
        ab.from_arrays((x, y)).batch(4),
        ab.from_arrays({"x": x, "y": y}).batch(4).as_supervised("x", None, "y"),
        ab.from_arrays(y).batch(5).map(lambda one: {"sum": one.sum(), "flag": True}),
        ab.from_arrays(np.array([b"a", b"", b"ccc"], object)).batch(2),
        ab.from_arrays((x > 3, x.astype("f2"), x.astype("u2"), x + 1j)).batch(3),
    ):
        assert same(described.to_tf(), described), described


def test_types_that_tensorflow_lacks_are_refused_by_name():
    with pytest.raises(ValueError, match="datetime64"):
        ab.from_arrays(np.zeros(3, "datetime64[s]")).batch(2).to_tf()


def test_each_iteration_is_the_next_epoch(stream):
    shuffled = stream.shuffle(seed=3).batch(10)
    dataset = shuffled.to_tf()
    for epoch in range(3):
        assert same(dataset, shuffled.epoch(epoch))
    repeated = shuffled.to_tf().repeat(2)
    assert [told(one) for one in repeated] == [told(one) for e in (0, 1) for one in shuffled.epoch(e)]


def test_the_cardinality_is_known_where_the_length_is(stream, tmp_path):
    assert stream.batch(8).to_tf().cardinality() == 8
    assert stream.to_tf().cardinality() == ROWS
    assert stream.repeat().batch(8).to_tf().cardinality() == tf.data.INFINITE_CARDINALITY
    assert stream.filter(bool).to_tf().cardinality() == tf.data.UNKNOWN_CARDINALITY
    path = tmp_path / "a.tfrecord"
    ab.write(path, [{"n": n} for n in range(5)])
    skipping = ab.read(path, {"n": ab.Numbers("int64")}, on_corrupt="skip")
    # damage may yet turn up
    assert skipping.to_tf().cardinality() == tf.data.UNKNOWN_CARDINALITY


def test_small_batches_go_several_at_a_time_and_large_ones_alone(monkeypatch):
    calls = []
    whole = interop._groups
    monkeypatch.setattr(interop, "_groups", lambda some: calls.append(1) or whole(some))
    rows = np.arange(500_000).reshape(500, 1000)
    for size, shares in ((7, 1), (200, 0)):
        calls.clear()
        described = ab.from_arrays(rows).batch(size)
        assert same(described.to_tf(), described)
        assert len(calls) == shares


def address(tensor):
    return np.asarray(memoryview(tensor)).ctypes.data


def fed(elements):
    """Yield elements as training takes them: tensors made of their columns one by one."""
    return (mapped(interop.tensor, element) for element in elements)


def aligned_batches(count=6, rows=300):
    return [{"x": aligned_copy(np.full((rows, 100), at, np.float32))} for at in range(count)]


@pytest.mark.parametrize("rows", [300, 3000], ids=["several at a time", "each alone"])
def test_dense_batches_are_not_copied(rows):
    batches = aligned_batches(rows=rows)
    described = ab.from_arrays(np.arange(6 * rows)).batch(rows).map(lambda at: batches[at[0] // rows])
    arrived = list(described.to_tf())
    assert [address(one["x"]) for one in arrived] == [one["x"].ctypes.data for one in batches]


def test_operations_on_tensors_leave_the_memory_they_share_alone():
    batches = aligned_batches()
    described = ab.from_arrays(np.arange(6)).batch(1).map(lambda at: batches[at[0]])
    dataset = described.to_tf().map(lambda one: tf.nn.relu(-(one["x"] + 1.0) * 2.0))
    for _ in dataset:
        pass
    for one in fed(described):
        tf.exp(one["x"] * 2.0)
    assert all((one["x"] == at).all() for at, one in enumerate(batches))


def test_tensors_outlive_their_stream_and_no_buffer_is_used_twice(tmp_path):
    rows = np.random.default_rng(0).integers(0, 256, (600, 5000), "u1")
    ab.write(tmp_path / "a.tfrecord", [{"x": row.tobytes(), "n": n} for n, row in enumerate(rows)])
    described = ab.read(tmp_path / "a.tfrecord", {"x": ab.Raw("uint8", (5000,)), "n": ab.Numbers("int64")})
    described = described.shuffle(seed=1).batch(20).limit_memory("16MiB")
    for tensors in (
        lambda epoch: islice(described.epoch(epoch).to_tf(), 25),
        lambda epoch: fed(islice(described.epoch(epoch), 25)),
    ):
        kept: deque = deque(maxlen=40)
        for epoch in range(6):
            kept.extend(tensors(epoch))
            gc.collect()
            for one in kept:
                assert (one["x"].numpy() == rows[one["n"].numpy()]).all()


def test_tensors_share_memory_with_aligned_columns_and_copies_the_rest():
    aligned = aligned_copy(np.arange(6.0).reshape(2, 3))
    off = np.frombuffer(bytearray(64 + 9 * 8), np.float64, 8, 8)
    locked = aligned_copy(np.arange(4))
    locked.flags.writeable = False
    turned = np.asfortranarray(np.arange(6).reshape(2, 3))
    one = next(fed([{"a": aligned, "o": off, "l": locked, "t": turned}]))
    assert address(one["a"]) == aligned.ctypes.data
    for name, array in (("o", off), ("l", locked), ("t", turned)):
        # on memory that is not aligned this would end the process
        assert (tf.add(one[name], one[name]).numpy() == array + array).all()


def test_every_kind_of_column_becomes_a_tensor(stream):
    for described in (stream.batch(8), stream.batch(8).as_supervised("x", "n")):
        assert [told(one) for one in fed(described)] == [told(one) for one in described]


@pytest.mark.parametrize("size", [1, 4])
def test_an_exception_arrives_with_its_own_words_and_behind_what_came_before(size):
    def failing(batch):
        if batch[0] >= 40:
            raise KeyError("no such weather")
        return batch

    arrived = []
    with pytest.raises(tf.errors.OpError, match=r"`map` called .*failing.*no such weather"):  # noqa: PT012
        for one in ab.from_arrays(np.arange(80)).batch(size).map(failing).to_tf():
            arrived.extend(one.numpy().tolist())
    assert arrived == list(range(40))


def test_an_empty_stream_behind_a_function_asks_for_its_specs():
    empty = ab.from_arrays(np.arange(3)).take(0).batch(2).map(lambda one: one)
    with pytest.raises(ValueError, match="element_spec"):
        empty.to_tf()
    assert list(empty.to_tf(element_spec=tf.TensorSpec((None,), tf.int64))) == []


def own_threads():
    return [one for one in threading.enumerate() if one.name.startswith("anybatch")]


@pytest.mark.parametrize("size", [None, 3])
def test_no_thread_is_left_behind_when_an_iterator_is_dropped(stream, size):
    described = stream.map(dict).repeat().prefetch(2)
    dataset = (described if size is None else described.batch(size)).prefetch(3).to_tf()
    for _ in range(3):
        iterator = iter(dataset.prefetch(2))
        next(iterator)
        del iterator
    gc.collect()
    deadline = time.monotonic() + 10
    while own_threads() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert own_threads() == []


def test_stats_follow_a_dataset(stream):
    batches = stream.batch(8)
    for _ in batches.to_tf():
        pass
    assert batches.stats()


def test_a_cached_stream_arrives_shuffled_anew(stream):
    kept = stream.cache().shuffle(seed=1).batch(10)
    dataset = kept.to_tf()
    for epoch in range(2):
        assert same(dataset, stream.shuffle(seed=1).batch(10).epoch(epoch))


def test_a_model_trains_on_a_dataset():
    import keras

    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 8)).astype(np.float32)
    y = (x @ rng.normal(size=8)).astype(np.float32)[:, None]
    dataset = ab.from_arrays({"x": x, "y": y}).shuffle(seed=1).batch(32).as_supervised("x", "y").to_tf()
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.Adam(0.1), loss="mse")
    history = model.fit(dataset, epochs=4, verbose=0, validation_data=dataset)
    losses = history.history["loss"]
    assert losses[-1] < losses[0] / 20
    assert history.params["steps"] == 19
