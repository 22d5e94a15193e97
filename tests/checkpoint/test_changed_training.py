"""A run that goes on with another optimizer or other metrics than it was begun with."""

import keras
import numpy as np
import pytest

import anybatch as ab
from anybatch.errors import AnybatchWarning
from anybatch.train.checkpoint import ChangedSince
from anybatch.train.checkpoint_files import newest_whole, write_state
from tests.checkpoint.interruptions import Interrupted, interrupting
from tests.checkpoint.trained import arrays

BATCH, BATCHES = 32, 10
SGD, Adam = keras.optimizers.SGD, keras.optimizers.Adam
SCHEDULE = keras.optimizers.schedules.ExponentialDecay(0.01, 5, 0.9)


def model(optimizer="sgd", metrics=()):
    keras.utils.set_random_seed(3)
    made = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4, "relu"), keras.layers.Dense(1)])
    made.compile(optimizer, "mse", metrics=list(metrics))
    return made


def fitted(made, folder, callbacks=()):
    x, y = arrays()
    return ab.fit(
        made, x, y, batch_size=BATCH, shuffle=False, verbose=0, checkpoint=folder, callbacks=list(callbacks)
    )


def begun(made, folder, batches=4):
    """Train some batches of an epoch, and be interrupted."""
    with pytest.raises(Interrupted):
        fitted(made, folder, [interrupting(batches)])


def forget_layouts(folder):
    """Let the newest state be one of a time when nobody wrote down what variables there were."""
    state = newest_whole(folder)
    del state.facts["variables"]
    write_state(folder, state.identity, state)


OPTIMIZERS = {
    "momentum": (lambda: SGD(0.01), lambda: SGD(0.01, momentum=0.9), "kernel_momentum"),
    "another slot": (Adam, lambda: Adam(amsgrad=True), "velocity_hat"),
    "a schedule": (lambda: SGD(0.01), lambda: SGD(SCHEDULE), "learning_rate"),
    "averages": (lambda: SGD(0.01, use_ema=True), lambda: SGD(0.01), "average"),
}


@pytest.mark.parametrize("older", [False, True], ids=["this version", "an older version"])
@pytest.mark.parametrize("change", OPTIMIZERS)
@pytest.mark.usefixtures("saving_always")
def test_another_optimizer_is_refused_by_name(tmp_path, change, older):
    before, now, told = OPTIMIZERS[change]
    begun(model(before()), tmp_path)
    if older:
        forget_layouts(tmp_path)
    with pytest.raises(ChangedSince, match=r"^the optimizer changed") as refused:
        fitted(model(now()), tmp_path)
    if not older:
        assert told in refused.value.before + refused.value.now


@pytest.mark.usefixtures("saving_always")
def test_the_same_optimizer_goes_on_whatever_keras_has_counted_its_names_up_to(tmp_path):
    begun(model(Adam()), tmp_path)
    for _ in range(3):
        continued = model(Adam())
    fitted(continued, tmp_path)
    whole = model(Adam())
    fitted(whole, None)
    for one, other in zip(continued.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


NAMES = {"mae": "mean_absolute_error", "mape": "mean_absolute_percentage_error"}
METRICS = {
    "one added": (["mae"], ["mae", "mape"], "mape"),
    "the first one": ([], ["mae"], "mae"),
    "one exchanged": (["mae"], ["mape"], "mape"),
}


@pytest.mark.parametrize("change", METRICS)
@pytest.mark.usefixtures("saving_always")
def test_metrics_that_are_new_begin_anew_and_that_is_said(tmp_path, change):
    before, now, new = METRICS[change]
    begun(model(metrics=before), tmp_path)
    with pytest.warns(AnybatchWarning, match=f"these begin anew: {NAMES[new]}$"):
        history = fitted(model(metrics=now), tmp_path).history
    expected = fitted(model(metrics=now), None).history
    for name in {"loss", *now} - {new}:
        assert history[name] == expected[name]
    # by the batches that were left
    assert history[new] != expected[new]
    assert np.isfinite(history[new]).all()


@pytest.mark.usefixtures("saving_always")
def test_metrics_in_another_order_keep_what_they_have_counted(tmp_path, recwarn):
    begun(model(metrics=["mae", "mape"]), tmp_path)
    history = fitted(model(metrics=["mape", "mae"]), tmp_path).history
    assert history == fitted(model(metrics=["mape", "mae"]), None).history
    assert not [one for one in recwarn if issubclass(one.category, AnybatchWarning)]


@pytest.mark.parametrize("metrics", [["mae"], ["mae", "mape"]], ids=["the same", "others"])
@pytest.mark.usefixtures("saving_always")
def test_a_state_of_an_older_version_is_taken_for_the_same_if_it_can_be(tmp_path, metrics):
    begun(model(metrics=["mae"]), tmp_path)
    forget_layouts(tmp_path)
    if metrics == ["mae"]:
        assert (
            fitted(model(metrics=metrics), tmp_path).history == fitted(model(metrics=metrics), None).history
        )
    else:
        with pytest.warns(AnybatchWarning, match=f"these begin anew: loss, {NAMES['mae']}, {NAMES['mape']}"):
            fitted(model(metrics=metrics), tmp_path)
