"""Variables put back from a file: the same bits, in next to no memory."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import pytest

from anybatch.handover import place
from anybatch.memory import PeakWatch, give_back_freed, make_peaks_predictable
from anybatch.train.checkpoint_arrays import StoredArrays, in_pieces, pieces_of
from anybatch.train.checkpoint_model import PIECE_BYTES, Snapshot, restore_model


@pytest.fixture
def table():
    """A model whose one table has several pieces, the last of which is short."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((4,), dtype="int32"), keras.layers.Embedding(150_001, 64)])
    model.compile("sgd", "mse")
    return model


def stored(model, folder):
    place(folder / "arrays", pieces_of(Snapshot(model)), durable=False)
    return StoredArrays(folder / "arrays")


def test_every_bit_comes_back(table, tmp_path):
    arrays = stored(table, tmp_path)
    before = table.get_weights()[0]
    assert before.nbytes > 4 * PIECE_BYTES
    table.set_weights([np.zeros_like(before)])
    restore_model(table, arrays)
    np.testing.assert_array_equal(table.get_weights()[0], before)


def test_a_large_table_takes_one_more_place_and_a_piece_on_its_way_back(table, tmp_path):
    arrays = stored(table, tmp_path)
    make_peaks_predictable()
    give_back_freed()
    with PeakWatch() as watch:
        restore_model(table, arrays)
    table_bytes = table.get_weights()[0].nbytes
    assert watch.peak_bytes - watch.before_bytes < table_bytes + 3 * PIECE_BYTES


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32", "int64", "bool"])
def test_variables_of_any_type_come_in_pieces(dtype):
    from anybatch.train.backends.tensorflow_state import assign_pieces

    variable = keras.Variable(np.zeros((7, 3)), dtype=dtype, trainable=False)
    array = np.asarray(keras.ops.cast(np.arange(21).reshape(7, 3) % 2, dtype))
    assign_pieces(variable, in_pieces({"it": array}, "it", 3 * array[:1].nbytes))
    np.testing.assert_array_equal(np.asarray(variable.value), array)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool", "uint64"])
@pytest.mark.parametrize("shape", [(), (3,), (0, 4), (5, 1, 2)])
def test_stored_arrays_are_those_that_were_written(dtype, shape, tmp_path):
    # an odd number of bytes before them: they need not be aligned
    written = {"odd": np.ones(3, "int8"), "array": np.arange(np.prod(shape)).reshape(shape).astype(dtype)}
    place(tmp_path / "arrays", pieces_of(written), durable=False)
    read = StoredArrays(tmp_path / "arrays")
    assert list(read) == list(written)
    for name, array in written.items():
        assert read[name].dtype == array.dtype
        np.testing.assert_array_equal(read[name], array)
        for kept in (read, written):
            for piece_bytes in (1, 7, 1000):
                rows = [piece for _, piece in in_pieces(kept, name, piece_bytes)]
                np.testing.assert_array_equal(np.concatenate(rows) if len(rows) > 1 else rows[0], array)
