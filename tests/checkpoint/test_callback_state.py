import json
import random
import warnings

import numpy as np
import pytest

from anybatch.errors import AnybatchWarning
from anybatch.train.checkpoint import Checkpoint
from anybatch.train.checkpoint_callbacks import Memories
from anybatch.train.checkpoint_files import State
from anybatch.train.checkpoint_random import random_state, restore_random
from anybatch.train.checkpoint_values import Kept, kept, restored


class Counting:
    """A user's own callback."""

    def __init__(self, threshold=3):
        self.threshold = threshold
        self.seen = []
        self.best = None
        self.model = object()
        self.on_change = print

    def learn(self):
        self.seen = [{"loss": np.float32(0.5), "where": (1, "a")}]
        self.best = [np.arange(3.0), np.ones((2, 2), np.float16)]


def through_a_file(tmp_path, facts, arrays):
    checkpoint = Checkpoint.open(tmp_path, {})
    checkpoint.save_now(State(1, facts, arrays))
    latest = checkpoint.latest()
    checkpoint.close()
    return latest


def test_what_a_callback_learnt_comes_back_and_its_configuration_stays_the_scripts_own(tmp_path):
    before = Counting()
    memories = Memories([before])
    before.learn()
    state = through_a_file(tmp_path, *memories.state())
    after = Counting(threshold=9)
    model = after.model
    Memories([after]).restore(state.facts, state.arrays)
    assert after.threshold == 9
    assert after.seen == before.seen
    assert type(after.seen[0]["loss"]) is np.float32
    assert after.seen[0]["where"] == (1, "a")
    assert all(np.array_equal(one, other) for one, other in zip(after.best, before.best, strict=True))
    assert (after.model, after.on_change) == (model, print)


def test_callbacks_of_one_kind_are_told_apart_by_order():
    first, second = Counting(), Counting()
    memories = Memories([first, second])
    first.best, second.best = 1, 2
    facts, arrays = memories.state()
    again = [Counting(), Counting()]
    Memories(again).restore(facts, arrays)
    assert [one.best for one in again] == [1, 2]


class Fresh:
    """A callback that no state knows."""


def learnt():
    before = Counting()
    memories = Memories([before])
    before.learn()
    return memories.state()


def test_a_callback_whose_class_was_renamed_starts_anew_and_that_is_said_once():
    facts, arrays = learnt()
    memories = Memories([Fresh()])
    with pytest.warns(AnybatchWarning, match="the state knows Counting, and there is Fresh instead"):
        memories.restore(facts, arrays)
    with warnings.catch_warnings(action="error"):
        # once at the beginning of training, once more at that of an epoch
        memories.restore(facts, arrays)


@pytest.mark.parametrize("now", [[Fresh(), Counting()], [], [Counting()]], ids=["added", "taken out", "kept"])
@pytest.mark.filterwarnings("error")
def test_nothing_is_said_of_callbacks_that_were_merely_added_or_taken_out(now):
    Memories(now).restore(*learnt())


@pytest.mark.parametrize(
    "value", [1, -0.0, float("inf"), None, True, "é", [], (), {}, [1, [2, (3,)]], {"a": {"b": [None]}}]
)
def test_plain_values_survive(value):
    found = kept(value, "x", {})
    again = restored(Kept(json.loads(json.dumps(found.told))), {})
    assert (again, type(again)) == (value, type(value))


@pytest.mark.parametrize("value", [object(), print, {1: 2}, {1, 2}, [object()], np.array([object()]), 1j])
def test_what_cannot_be_kept_exactly_is_not_kept_at_all(value):
    assert kept(value, "x", {}) is None


def test_a_state_file_cannot_choose_what_is_called():
    assert restored(Kept({"function": ["os", "system"]}), {}) is None


def test_a_value_that_holds_itself_is_not_kept():
    endless = []
    endless.append(endless)
    assert kept(endless, "x", {}) is None


def test_random_generators_go_on_where_they_were():
    def drawn():
        return [random.gauss(0, 1), np.random.randn(), np.random.rand()]  # noqa: NPY002 - it is the global one

    drawn()
    state = json.loads(json.dumps(random_state()))
    expected = drawn()
    random.seed(5)
    restore_random(state)
    assert drawn() == expected
