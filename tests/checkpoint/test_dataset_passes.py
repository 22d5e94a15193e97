"""A pass over a `tf.data.Dataset` goes on from anywhere, and so do the passes behind it."""

import time
from itertools import islice

import keras
import pytest
import tensorflow as tf

import anybatch as ab
from anybatch.train.backends import tensorflow_datasets as passes
from anybatch.train.backends.tensorflow_datasets import DatasetPass
from tests.checkpoint.interruptions import Interrupted, interrupting, weights_after
from tests.checkpoint.trained import arrays, dataset, model

BATCHES = 10
"""Of one pass."""


def seeded(made):
    keras.utils.set_random_seed(3)
    return made()


def of_files():
    x, _ = arrays()
    files = tf.data.Dataset.range(4).shuffle(4, seed=1)
    rows = tf.data.Dataset.from_tensor_slices(x[:80])
    return files.interleave(lambda file: rows.map(lambda row: row + tf.cast(file, row.dtype))).batch(32)


DATASETS = {
    "shuffled": dataset,
    "repeated": lambda: dataset().repeat(),
    "shuffled with all in the buffer": lambda: dataset(1000),
    "of shuffled files": lambda: of_files().repeat(),
    "in order": lambda: dataset(None).repeat(),
}


def values(batches, most):
    return [tf.nest.flatten(list(batch))[0].numpy().tobytes() for batch in islice(batches, most)]


def this_pass_and_later_ones(begun, made):
    """Return 35 batches: of this pass, and of those behind it."""
    found = values(begun, 35)
    while len(found) < 35:
        found += values(DatasetPass(made), 35 - len(found))
    return found


@pytest.mark.parametrize("kind", DATASETS)
@pytest.mark.parametrize("at", [0, 1, 2, 5, 7, 8, 9])
def test_going_on_gives_the_rest_of_the_pass_and_the_passes_behind_it(tmp_path, kind, at):
    made = seeded(DATASETS[kind])
    begun = DatasetPass(made)
    begun.remember_beginning()
    assert begun.look() is not None
    values(begun, at)
    # long enough for threads to read ahead
    time.sleep(0.05)
    kept = begun.kept(tmp_path)
    rest = this_pass_and_later_ones(begun, made)

    again = seeded(DATASETS[kind])
    going_on = DatasetPass(again)
    going_on.go_on_from(kept, tmp_path)
    assert this_pass_and_later_ones(going_on, again) == rest


def test_a_state_is_kept_as_it_is_unless_orders_are_missing_from_it(tmp_path):
    begun = DatasetPass(seeded(lambda: dataset(100)))
    begun.remember_beginning()
    behind = []
    for _ in range(BATCHES):
        values(begun, 1)
        time.sleep(0.02)
        behind.append(int(begun.kept(tmp_path)[passes._BEHIND]))
    assert behind[0] == 0
    # threads are two batches ahead, and one more notices the end
    assert behind[-1] > 0


def test_looking_at_a_dataset_to_plan_changes_no_order(tmp_path):
    def fitted(memory, checkpoint=None, callbacks=()):
        trained, data = model(), dataset()
        options = {"epochs": 3, "verbose": 0, "callbacks": list(callbacks)}
        history = ab.fit(trained, data, memory=memory, checkpoint=checkpoint, **options)
        return weights_after(trained), history.history

    undisturbed = fitted(None)
    assert fitted("64GiB") == undisturbed
    with pytest.raises(Interrupted):
        fitted("64GiB", tmp_path, [interrupting(12)])
    assert fitted("64GiB", tmp_path) == undisturbed
