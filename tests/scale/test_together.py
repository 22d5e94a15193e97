"""What one of several workers does besides training: callbacks, and the state when the others are gone."""

import json
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from anybatch.handover import FOLDER_VARIABLE
from anybatch.train import together
from anybatch.train.shared import SharedSession
from anybatch.train.together import SharedKeeper, SharedWatching


class First:
    """What a worker hears of the first one."""

    rank, size = 1, 2

    def __init__(self, epoch, weights):
        self._epoch, self._weights = epoch, weights

    def of_first(self, _):
        yield json.dumps(self._epoch).encode()

    def give_first_values(self, variables):
        for variable, value in zip(variables, self._weights, strict=True):
            variable.assign(value)


class Session(SharedSession):
    """A session that has made some updates."""

    def __init__(self, model, workers):
        self.model, self._workers = model, workers
        self._adapter = SimpleNamespace(moved_by_a_step=lambda model: model.trainable_variables)
        self.transaction = SimpleNamespace(size=SimpleNamespace(step=0, now=None), alive=None)


def watching(workers, **options):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", **options)
    keeper = object.__new__(SharedKeeper)
    vars(keeper).update(model=model, state=None, source=SimpleNamespace(num_batches=9, batch_size=4), kept=[])
    vars(keeper).update(_checkpoint=None, _received=None)
    callbacks = keras.callbacks.CallbackList([], model=model)
    return model, SharedWatching(keeper, callbacks, Session(model, workers), workers)


def test_what_a_callback_of_the_first_worker_brings_back_all_of_them_have():
    given = [np.full((2, 1), 7.0), np.full((1,), 8.0)]
    model, watched = watching(First(3, given))
    watched.on_train_begin()
    assert model._initial_epoch == 3
    for one, other in zip(model.get_weights(), given, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("made", "written"), [(2, 1), (3, 0)], ids=["between executions", "within one"])
def test_whoever_is_cut_off_writes_no_weights_whose_place_nobody_knows(made, written, monkeypatch):
    _, watched = watching(First(None, []), steps_per_execution=2)
    saved = []
    monkeypatch.setattr(SharedKeeper, "keeps", True)
    monkeypatch.setattr(SharedKeeper, "close", lambda self: None)
    monkeypatch.setattr(SharedKeeper, "due", lambda self: False)
    monkeypatch.setattr(SharedWatching, "_write", lambda *_, **__: saved.append(1))
    watched._keeper.source.place = dict
    watched._session.transaction.size.step = 2
    watched.on_train_batch_end(1)
    watched._session.transaction.size.step = made
    watched.cut_off()
    assert len(saved) == written


def test_a_state_that_was_sent_lies_with_the_papers_and_one_that_was_left_goes(tmp_path, monkeypatch):
    (tmp_path / f"{together._RECEIVED}left").mkdir()
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    assert together._room_for_states() is None
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert together._room_for_states() == tmp_path
    assert not list(tmp_path.iterdir())
