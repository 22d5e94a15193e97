"""What is tried has as many rows as it is said to have: a line through other sizes would mislead."""

import numpy as np
import pytest

import anybatch as ab
from anybatch.train.inputs import FirstBatch, StreamSource
from anybatch.train.memories import HostMemory
from anybatch.train.probe import Prober
from anybatch.train.split import largest_part

BATCH = 100
X, Y = np.arange(3.0 * BATCH).reshape(BATCH, 3).astype("float32"), np.ones((BATCH, 1), "float32")


def from_stream():
    return StreamSource(ab.from_arrays((X, Y)).batch(BATCH))


def from_dataset():
    return FirstBatch((X, Y), BATCH)


@pytest.fixture
def model():
    import keras

    made = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made


def rows_seen(model, source, rows, *, several):
    """Return the rows of the parts of one update, and the largest value in the last of them."""
    prober, seen = Prober(model, source, HostMemory(64 << 30)), []
    backend = prober._session.backend

    def noted(part):
        seen.append((backend.row_count(part), float(np.max(part[0]))))
        return part

    update = prober._session.transaction.update
    prober._session.transaction.update = lambda parts, expected: update(
        ((noted(part), last) for part, last in parts), expected
    )
    prober._made(rows, 2 if several else 1, least=1, most=1)
    return [count for count, _ in seen], seen[-1][1]


@pytest.mark.parametrize("rows", [1, 2, 7, 50, 51, 75, 99, 100])
@pytest.mark.parametrize("source", [from_stream, from_dataset])
def test_one_part_has_the_rows_that_were_asked_for(model, source, rows):
    rows = largest_part(BATCH, rows) if 2 * rows <= BATCH else rows
    assert rows_seen(model, source(), rows, several=False) == ([rows], 3 * rows - 1)


@pytest.mark.parametrize("rows", [1, 7, 50])
def test_several_parts_have_them_each(model, rows):
    rows = largest_part(BATCH, rows)
    counts, highest = rows_seen(model, from_stream(), rows, several=True)
    assert counts == [rows, rows]
    assert highest == 6 * rows - 1
