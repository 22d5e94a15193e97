"""An update that has begun and fails is never made once more: that would change the weights twice."""

import pickle
import resource
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import keras
import numpy as np
import pytest

import anybatch as ab
from anybatch.memory import ONEDNN_VARIABLE, PRODUCTS_VARIABLE, loud_environment, silence
from anybatch.memory.ceilings import AddressSpace
from anybatch.train.backends.tensorflow_steps import Steps
from anybatch.train.refusals import OneSampleDoesNotFit, UpdateCutShort

MB = 1 << 20
DATA = np.ones((16, 3), "float32"), np.ones((16, 1), "float32")


def made() -> Any:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    return model


def trained(part: int) -> Any:
    model = made()
    ab.fit(model, *DATA, batch_size=16, micro_batch_size=part, verbose=0)
    return model


def failing(monkeypatch: Any, error: Exception, *behind: bool) -> None:
    """Have updates fail, one after the other: behind all of it, or before anything was done."""
    left = list(behind)

    def disturbed(original: Any) -> Any:
        def traced(self: Any, step: Any) -> Any:
            made = original(self, step)

            def run(*given: Any) -> Any:
                if not left:
                    return made(*given)
                if left.pop(0):
                    made(*given)
                raise error

            return run if step.__name__ in {"_whole_update", "_update"} else made

        return traced

    for name in ("_traced", "_plainly_traced"):
        monkeypatch.setattr(Steps, name, disturbed(getattr(Steps, name)))


@pytest.mark.parametrize("part", [16, 4])
def test_running_out_before_the_first_weight_changes_is_survived(monkeypatch: Any, part: int) -> None:
    undisturbed = trained(part).get_weights()
    failing(monkeypatch, MemoryError("no room"), False)
    for one, other in zip(trained(part).get_weights(), undisturbed, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("part", [16, 4])
def test_running_out_behind_it_is_said(monkeypatch: Any, part: int) -> None:
    failing(monkeypatch, MemoryError("no room"), True)
    with pytest.raises(UpdateCutShort, match="no room; go on from the last state"):
        trained(part)


def left(room_bytes: int) -> AddressSpace:
    return AddressSpace(limit_bytes=1 << 40, taken_bytes=0, peak_bytes=(1 << 40) - room_bytes)


@pytest.fixture
def limited() -> Iterator[None]:
    """Let address space be limited, though to more than anybody takes."""
    # whoever imports it under a limit chooses for the whole process, and all below it, how to multiply
    import_module("anybatch.train.backends.tensorflow")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 46, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.fixture
def chosen_early(monkeypatch: Any) -> None:
    """Let TensorFlow have chosen how it multiplies before there was a limit."""
    for name in (PRODUCTS_VARIABLE, ONEDNN_VARIABLE):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("limited", "chosen_early")
def test_where_products_may_have_failed_in_silence_nobody_goes_on_with_them(monkeypatch: Any) -> None:
    failing(monkeypatch, MemoryError("no room"), False)
    with pytest.raises(UpdateCutShort, match="cannot be trusted: no room"):
        trained(16)


@pytest.mark.usefixtures("limited", "chosen_early")
def test_nor_where_none_failed_aloud_but_the_limit_was_near(monkeypatch: Any) -> None:
    rooms = iter(range(20, 0, -3))
    monkeypatch.setattr(silence.AddressSpace, "of_this_process", lambda: left(next(rooms) * MB))
    with pytest.raises(UpdateCutShort, match="so near to its limit"):
        trained(2)


@pytest.mark.usefixtures("limited")
def test_where_products_fail_aloud_it_is_survived(monkeypatch: Any) -> None:
    for name, value in loud_environment().items():
        monkeypatch.setenv(name, value)
    failing(monkeypatch, MemoryError("no room"), False)
    assert trained(16).optimizer.iterations == 1


def test_what_is_no_exhaustion_is_told_as_it_is(monkeypatch: Any) -> None:
    failing(monkeypatch, ValueError("wrong shape"), True)
    with pytest.raises(ValueError, match="wrong shape"):
        trained(16)


def test_a_careful_commit_that_runs_out_is_put_back(monkeypatch: Any) -> None:
    """The second try keeps what it changes: the update does not fit, and nothing is broken."""
    model, before = made(), made().get_weights()
    failing(monkeypatch, MemoryError("no room"), False, True)
    with pytest.raises(OneSampleDoesNotFit, match=r"the update alone, which takes .* at least") as caught:
        ab.fit(model, *DATA, batch_size=16, micro_batch_size=4, verbose=0)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    for one, other in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_part_is_not_added_twice_if_memory_runs_out_behind_its_first_gradient(monkeypatch: Any) -> None:
    undisturbed = trained(4).get_weights()
    model, exhausted = made(), iter([False, True, False, False, False])
    original = Steps._with_more

    def running_out(self: Any, side: Any) -> Any:
        if next(exhausted, False):
            raise MemoryError("there is none")
        return original(self, side)

    monkeypatch.setattr(Steps, "_with_more", running_out)
    history = ab.fit(model, *DATA, batch_size=16, micro_batch_size=4, verbose=0)
    assert len(history.events) == 1
    for one, other in zip(model.get_weights(), undisturbed, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_memory_may_run_out_after_somebody_pressed_ctrl_c(monkeypatch: Any) -> None:
    model = trained(16)
    steps = model._anybatch_made.whole
    whole = steps._whole
    ends: list[BaseException] = [KeyboardInterrupt(), MemoryError("there is none")]

    def once(batch: Any) -> Any:
        if not ends:
            return whole(batch)
        error = ends.pop(0)
        if isinstance(error, KeyboardInterrupt):
            whole(batch)
        raise error

    monkeypatch.setattr(steps, "_whole", once)
    with pytest.raises(KeyboardInterrupt):
        ab.fit(model, *DATA, batch_size=16, verbose=0)
    history = ab.fit(model, *DATA, batch_size=16, verbose=0)
    assert [event.kind for event in history.events] == ["exhausted"]
