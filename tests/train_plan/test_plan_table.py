"""What a plan's table says: every byte of the peak in a row, and other ways with their prices."""

from dataclasses import replace

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anybatch.memory import PeakModel, Peaks
from anybatch.train.backends.tensorflow_sizes import sizes, variables_bytes
from anybatch.train.plan_alternatives import alternatives, rematerialised
from anybatch.train.plan_uses import MOST_LAYERS, Peak, Sizes, accounted

MB = 1 << 20
some_bytes = st.integers(0, 500 * MB)
layers = st.lists(st.tuples(st.sampled_from("abcdefghij"), st.integers(0, MB)), unique_by=lambda one: one[0])
some_sizes = st.builds(
    Sizes,
    weights_bytes=some_bytes,
    slots_bytes=some_bytes,
    gradients_bytes=some_bytes,
    slices_bytes=st.integers(0, 10_000),
    sample_bytes=st.integers(0, 100_000),
    layers=layers.map(tuple),
)


@st.composite
def peaks_and_sizes(draw):
    told, batch = draw(some_sizes), draw(st.integers(1, 4096))
    part = draw(st.integers(1, batch))
    held = draw(some_bytes) + told.weights_bytes
    certain = held + told.slots_bytes + told.gradients_bytes + told.slices_bytes * batch
    peak = Peak(certain + draw(some_bytes), held, told.weights_bytes, batch, part, draw(some_bytes))
    return peak, told


@given(peaks_and_sizes())
def test_the_rows_come_to_the_predicted_peak(case):
    peak, told = case
    rows = accounted(peak, told).rows
    assert sum(row.n_bytes for row in rows) == peak.n_bytes
    assert all(row.n_bytes > 0 for row in rows)


@given(peaks_and_sizes())
def test_no_estimate_is_shown_larger_than_it_was_made(case):
    peak, told = case
    account = accounted(peak, told)
    assert account.activations_bytes <= told.activations_bytes * peak.part
    assert 0 <= account.workspace_bytes <= peak.growing_bytes
    assert account.rest_bytes >= 0


def test_sums_are_there_only_where_a_batch_is_split():
    told = Sizes(weights_bytes=MB, gradients_bytes=MB)
    split = Peak(9 * MB, 2 * MB, MB, batch_size=8, part=4)
    names = {row.name for row in accounted(split, told).rows}
    assert "sums of gradients" in names
    assert "sums of gradients" not in {row.name for row in accounted(replace(split, part=8), told).rows}


def test_the_largest_layers_are_named_and_the_others_counted():
    layers = tuple((f"layer {at}", at * 1000) for at in range(1, 9))
    rows = accounted(Peak(9 * MB, MB, 0, 8, 8), Sizes(layers=layers)).rows
    named = [row.name for row in rows if row.name.startswith("activations")]
    assert named[:2] == ["activations of layer 8", "activations of layer 7"]
    assert named[MOST_LAYERS:] == ["activations of 3 other layers"]


@given(st.lists(st.integers(0, 1000), max_size=200))
def test_rematerialising_never_holds_more_than_all(layers):
    blocks, kept = rematerialised(layers)
    assert 0 <= kept <= 1
    assert 1 <= blocks <= max(1, len(layers))


def told(sizes, *, exact=True, split_fixed=0.0, least_split=0, parts=1):
    peaks = Peaks(PeakModel(20.0 * MB, MB), PeakModel(20.0 * MB + split_fixed, MB), least_split)
    part = 64 // parts
    peak = Peak(100 * MB + peaks.predicted_peak_bytes(part, 64), 100 * MB, sizes.weights_bytes, 64, part)
    found = alternatives(peak, peaks, sizes, accounted(peak, sizes), exact=exact)
    return peak, {way.name: way for way in found}


def test_smaller_parts_take_what_was_measured_for_them():
    peak, ways = told(Sizes(), parts=2)
    assert peak.n_bytes == 152 * MB
    assert [way.predicted_peak_bytes // MB for way in ways.values()] == [136, 128]
    assert list(ways) == ["4 parts of 16", "8 parts of 8"]


def test_sums_that_take_more_than_they_save_are_said():
    _, ways = told(Sizes(), split_fixed=200.0 * MB)
    assert "saves nothing" in ways["2 parts of 32"].price


def test_parts_of_tables_are_told_only_where_their_gradients_were_added_up():
    assert not told(Sizes(slices_bytes=1000))[1]
    _, ways = told(Sizes(slices_bytes=1000), least_split=60 * MB)
    assert [way.predicted_peak_bytes // MB for way in ways.values()] == [160, 160]


def test_what_cannot_be_split_exactly_is_said_before_it_is_split():
    _, ways = told(Sizes(), exact=False)
    assert "cannot be split exactly" in ways["2 parts of 32"].price


def test_mixed_precision_halves_the_activations_unless_they_are_halved_already():
    full = Sizes(layers=(("wide", MB // 2),))
    peak, ways = told(full)
    assert peak.n_bytes - ways["mixed precision"].predicted_peak_bytes == 16 * MB
    assert "mixed precision" not in told(replace(full, full_precision=False))[1]


@pytest.mark.parametrize(("slots", "saved"), [(8 * MB, [4 * MB, 8 * MB]), (4 * MB, [4 * MB]), (0, [])])
def test_an_optimizer_with_fewer_slots_saves_them(slots, saved):
    peak, ways = told(Sizes(weights_bytes=4 * MB, slots_bytes=slots))
    found = [peak.n_bytes - way.predicted_peak_bytes for name, way in ways.items() if "slot" in name]
    assert found == saved


# what Keras tells


def compiled(model):
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)
    return model


def test_keras_tells_the_bytes_of_weights_slots_and_layers():
    layers = keras.layers
    model = compiled(
        keras.Sequential(
            [
                keras.Input((8, 8, 3)),
                layers.Conv2D(4, 3, name="seen"),
                layers.Flatten(),
                layers.Dense(5, name="last"),
            ]
        )
    )
    found = sizes(model, (np.ones((2, 8, 8, 3), "float32"), np.ones((2, 5), "float32")))
    weights = 4 * model.count_params()
    assert (found.weights_bytes, found.gradients_bytes) == (weights, weights)
    # and the count of updates, and the learning rate
    assert 2 * weights <= found.slots_bytes <= 2 * weights + 16
    assert found.layers == (("seen", 6 * 6 * 4 * 4), ("last", 5 * 4))
    assert found.sample_bytes == 4 * (8 * 8 * 3 + 5)
    assert variables_bytes(model) == found.weights_bytes + found.slots_bytes


def test_a_table_has_slices_for_a_gradient():
    model = compiled(
        keras.Sequential(
            [keras.Input((6,), dtype="int32"), keras.layers.Embedding(1000, 4), keras.layers.Flatten()]
        )
    )
    found = sizes(model, (np.ones((2, 6), "int32"), np.ones((2, 24), "float32")))
    assert found.gradients_bytes == 0
    assert found.slices_bytes == 6 * (4 * 4 + 8)


def test_layers_inside_of_layers_are_counted_once_and_steps_for_each_step():
    inner = keras.Sequential([keras.Input((7, 3)), keras.layers.LSTM(5, name="steps")])
    model = compiled(keras.Sequential([keras.Input((7, 3)), inner, keras.layers.Dense(2, name="last")]))
    found = dict(sizes(model, (np.ones((2, 7, 3), "float32"), np.ones((2, 2), "float32"))).layers)
    # an output, and at each of 7 steps four gates and two states
    assert found == {"steps": 4 * (5 + 7 * (20 + 10)), "last": 8}


def test_a_model_of_ones_own_tells_its_layers_too_and_stays_as_it_was():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.wide = keras.layers.Dense(16, name="wide")
            self.dropped = keras.layers.Dropout(0.5, name="dropped")

        def call(self, x, training=False):
            return self.dropped(self.wide(x), training=training)

    model = Own()
    model(np.ones((2, 3), "float32"))
    compiled(model)
    before = [variable.numpy().tolist() for variable in model.variables]
    found = sizes(model, (np.ones((2, 3), "float32"), np.ones((2, 16), "float32")))
    assert found.layers == (("wide", 64), ("dropped", 64))
    assert [variable.numpy().tolist() for variable in model.variables] == before


def test_a_model_that_cannot_be_traced_has_rows_for_its_weights_alone():
    class Stubborn(keras.Model):
        def __init__(self):
            super().__init__()
            self.wide = keras.layers.Dense(4)

        def call(self, x):
            return self.wide(np.asarray(x))

    model = Stubborn()
    model(np.ones((2, 3), "float32"))
    found = sizes(compiled(model), (np.ones((2, 3), "float32"), np.ones((2, 4), "float32")))
    assert found.layers == ()
    assert found.weights_bytes == 4 * 16


def test_what_saves_next_to_nothing_is_not_offered():
    _, ways = told(Sizes(weights_bytes=2000, slots_bytes=4000, layers=(("small", 10), ("tiny", 1))))
    assert list(ways) == ["2 parts of 32", "4 parts of 16"]
