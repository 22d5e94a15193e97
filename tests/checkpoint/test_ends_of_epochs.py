"""Where an epoch or a training ends, and goes on all the same."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

import anybatch as ab
from anybatch.errors import AnybatchWarning
from tests.checkpoint.interruptions import Interrupted, interrupting, weights_after
from tests.checkpoint.trained import arrays, dataset, model, stream


class SchedulingByHand(keras.callbacks.Callback):
    """Draws, counts and changes weights when an epoch begins."""

    def __init__(self):
        super().__init__()
        self.begun = 0

    def on_epoch_begin(self, epoch, logs=None):
        self.begun += 1
        weights = self.model.layers[0].trainable_weights[1]
        weights.assign_add(np.random.rand(*weights.shape) * self.begun)  # noqa: NPY002 - it is the global one


def plain(optimizer=None, **options):
    keras.utils.set_random_seed(3)
    made = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(1)])
    made.compile(optimizer or keras.optimizers.SGD(0.01), "mse", metrics=["mae"], **options)
    return made


@pytest.mark.parametrize("interrupted_at", [[3], [13, 2, 3]], ids=["once", "again and again"])
@pytest.mark.usefixtures("saving_always")
def test_an_epoch_that_is_gone_on_with_does_not_begin_twice(tmp_path, interrupted_at):
    def fitted(checkpoint, *more):
        trained = plain()
        scheduling = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9)
        by_hand = SchedulingByHand()
        callbacks = [scheduling, by_hand, *more]
        history = ab.fit(trained, stream(), epochs=3, verbose=0, checkpoint=checkpoint, callbacks=callbacks)
        rate = float(trained.optimizer.learning_rate)
        return rate, by_hand.begun, weights_after(trained), history.history

    for at in interrupted_at:
        with pytest.raises(Interrupted):
            fitted(tmp_path, interrupting(at))
    assert fitted(tmp_path) == fitted(None)


STEPS = {
    "a stream": lambda: stream().repeat(),
    "a stream that ends in an epoch": stream,
    "a dataset": lambda: dataset().repeat(),
}


@pytest.mark.parametrize("steps", [7, 10])
@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.filterwarnings("ignore:the data ran out")
def test_more_epochs_of_some_steps_go_on_with_the_data_that_is_left(tmp_path, kind, steps):
    def fitted(epochs, checkpoint):
        trained = model()
        history = ab.fit(
            trained, STEPS[kind](), steps_per_epoch=steps, epochs=epochs, verbose=0, checkpoint=checkpoint
        )
        return weights_after(trained), history.history

    fitted(1, tmp_path)
    fitted(2, tmp_path)
    assert fitted(4, tmp_path) == fitted(4, None)


@pytest.mark.usefixtures("saving_always")
@pytest.mark.filterwarnings("ignore:the data ran out")
def test_data_that_ends_within_an_epoch_of_some_steps_ends_it_for_a_continued_run_too(tmp_path):
    def fitted(checkpoint, callbacks=()):
        trained = plain()
        options = {"steps_per_epoch": 7, "epochs": 4, "verbose": 0, "callbacks": list(callbacks)}
        history = ab.fit(trained, stream(), checkpoint=checkpoint, **options)
        return weights_after(trained), history.history

    # three batches are left for the second epoch, and all three are made
    with pytest.raises(Interrupted):
        fitted(tmp_path, [interrupting(10)])
    assert fitted(tmp_path) == fitted(None)


ENDINGS = {
    "averages of an optimizer": lambda: (
        plain(keras.optimizers.SGD(0.01, use_ema=True, ema_momentum=0.5)),
        [],
    ),
    "the best weights": lambda: (
        plain(),
        [keras.callbacks.EarlyStopping("loss", mode="max", patience=9, restore_best_weights=True)],
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_put_in_place_of_the_weights_at_the_end_is_returned_and_not_gone_on_from(tmp_path, ending):
    def fitted(epochs, checkpoint):
        trained, callbacks = ENDINGS[ending]()
        options = {"epochs": epochs, "verbose": 0, "callbacks": callbacks}
        history = ab.fit(trained, stream(), checkpoint=checkpoint, **options)
        return weights_after(trained), history.history

    first = fitted(2, tmp_path)
    assert first == fitted(2, None)
    assert fitted(2, tmp_path) == first
    assert fitted(4, tmp_path) == fitted(4, None)


def test_a_finished_run_has_the_weights_it_was_returned_with_even_if_nobody_makes_them_again(tmp_path):
    trained, callbacks = ENDINGS["the best weights"]()
    ab.fit(trained, stream(), epochs=2, verbose=0, checkpoint=tmp_path, callbacks=callbacks)
    again = plain()
    ab.fit(again, stream(), epochs=2, verbose=0, checkpoint=tmp_path)
    assert weights_after(again) == weights_after(trained)


def of_unknown_length():
    return tf.data.Dataset.from_tensor_slices(arrays()).filter(lambda *_: True).batch(32)


def stream_of_unknown_length():
    x, y = arrays()
    return ab.from_arrays((x, y)).filter(lambda record: True).batch(32)


LAST_BATCHES = {
    "data of unknown length": (of_unknown_length, {}, {}),
    "a stream of unknown length": (stream_of_unknown_length, {}, {}),
    "some steps": (lambda: stream().repeat(), {"steps_per_epoch": 10}, {}),
    "executions of some steps": (stream, {}, {"steps_per_execution": 3}),
    "executions of data of unknown length": (of_unknown_length, {}, {"steps_per_execution": 3}),
    "executions of such a stream": (stream_of_unknown_length, {}, {"steps_per_execution": 3}),
}


class Validating(keras.callbacks.Callback):
    """Is interrupted behind the last batch of an epoch, before the epoch has ended."""

    def on_test_begin(self, logs=None):
        raise Interrupted


@pytest.mark.parametrize("case", LAST_BATCHES)
@pytest.mark.usefixtures("saving_always")
def test_an_epoch_of_which_no_batch_is_left_is_told_of_as_it_was(tmp_path, case):
    data, options, compiled = LAST_BATCHES[case]
    x, y = arrays()

    def fitted(checkpoint, callbacks=()):
        trained = plain(**compiled)
        history = ab.fit(
            trained,
            data(),
            epochs=2,
            validation_data=(x[:64], y[:64]),
            verbose=0,
            checkpoint=checkpoint,
            callbacks=list(callbacks),
            **options,
        )
        return weights_after(trained), history.history

    with pytest.raises(Interrupted):
        fitted(tmp_path, [Validating()])
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "the data has given no rows", AnybatchWarning)
        continued = fitted(tmp_path)
    assert continued == fitted(None)
