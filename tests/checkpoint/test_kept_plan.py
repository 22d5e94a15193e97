"""A run that goes on begins with the parts it had, where they still hold."""

from dataclasses import replace

import pytest

import anybatch as ab
from anybatch.handover import FOLDER_VARIABLE, Orders
from anybatch.memory import predictable_environment
from anybatch.train.checkpoint_keeper import Keeper
from anybatch.train.checkpoint_plan import kept_plan, plan_facts
from anybatch.train.inputs import StreamSource
from anybatch.train.plans import Plan
from tests.checkpoint.interruptions import Interrupted, interrupting

LIMIT = 4 << 30
PLAN = Plan(512, 128, 4, LIMIT // 2, LIMIT)


def model():
    from tests.checkpoint.trained import model

    return model()


@pytest.mark.parametrize(("limit", "holds"), [(LIMIT - 1, False), (LIMIT, True), (2 * LIMIT, False)])
def test_a_plan_holds_under_the_limit_it_was_made_for(limit, holds):
    made = model()
    kept = kept_plan({"plan": plan_facts(PLAN, made)}, made, limit)
    assert (kept is not None) is holds
    assert kept is None or (kept.micro_batch_size, kept.limit_bytes) == (128, limit)


def test_what_nobody_measured_is_not_kept():
    made = model()
    assert plan_facts(replace(PLAN, predicted_peak_bytes=None), made) is None
    for facts in ({}, {"plan": None}, {"plan": {"of": "another version"}}):
        assert kept_plan(facts, made, LIMIT) is None


def test_a_plan_does_not_hold_where_more_memory_is_needed_for_the_same(monkeypatch):
    made = model()
    loud = plan_facts(PLAN, made)
    for name, value in predictable_environment().items():
        monkeypatch.setenv(name, value)
    quiet = plan_facts(PLAN, made)
    assert kept_plan({"plan": loud}, made, LIMIT) is not None
    monkeypatch.undo()
    assert kept_plan({"plan": quiet}, made, LIMIT) is None
    made.run_eagerly = True
    assert kept_plan({"plan": loud}, made, LIMIT) is None


@pytest.fixture
def interrupted(tmp_path, saving_always, monkeypatch):
    """A folder with the state of a run that had a plan, and that plan."""
    from tests.checkpoint.trained import stream

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "state"
    with pytest.raises(Interrupted):
        ab.fit(model(), stream(), memory=LIMIT, verbose=0, checkpoint=folder, callbacks=[interrupting(3)])
    return folder


def keeper(folder):
    from tests.checkpoint.trained import stream

    made = Keeper(model(), StreamSource(stream()), folder, resume=True, epochs=1)
    made.close()
    return made


def test_a_run_that_goes_on_begins_with_the_part_of_its_state(interrupted):
    found = keeper(interrupted)
    assert found.state.facts["plan"]["limit_bytes"] == LIMIT
    assert found.part_to_begin_with("auto", LIMIT) == 32
    plan = found.bounded(Plan(32, 32, 1))
    assert plan.predicted_peak_bytes == found.state.facts["plan"]["predicted_peak_bytes"]
    assert plan.limit_bytes == LIMIT
    assert "nothing was probed" in str(plan)


def test_who_names_a_part_or_has_less_memory_does_not_get_that_of_the_state(interrupted):
    found = keeper(interrupted)
    assert found.part_to_begin_with(7, LIMIT) == 7
    assert found.part_to_begin_with("auto", LIMIT - 1) == "auto"
    assert found.bounded(Plan(32, 16, 2)) == Plan(32, 16, 2)


def test_orders_count_for_more_than_the_state(interrupted, tmp_path, monkeypatch):
    Orders(largest_part=8).write(tmp_path)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    found = keeper(interrupted)
    part = found.part_to_begin_with("auto", LIMIT)
    assert found.bounded(Plan(32, part, 1)).micro_batch_size == 8
