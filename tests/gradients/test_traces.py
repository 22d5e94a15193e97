"""A loss function is traced once, whatever kind of callable it is, and kept alive by nobody."""

import functools
import gc
import os
import weakref
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow as tf

import anybatch as ab

X = tf.constant(np.arange(12, dtype="float32").reshape(6, 2))


def weight() -> Any:
    return tf.Variable([1.0, 2.0])


class Trainer:
    """Two losses of one object, which count how often Python runs them: once per trace."""

    def __init__(self) -> None:
        self.weight = weight()
        self.calls = 0

    def mean(self, x: Any) -> Any:
        self.calls += 1
        return tf.reduce_mean(x * self.weight)

    def total(self, x: Any) -> Any:
        self.calls += 1
        return tf.reduce_sum(x * self.weight)


class CallableTrainer(Trainer):
    def __call__(self, x: Any) -> Any:
        return self.mean(x)


class TrainedModel(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.weight = weight()
        self.calls = 0

    def mean(self, x: Any) -> Any:
        self.calls += 1
        return tf.reduce_mean(x * self.weight)


@dataclass
class Unhashable:
    weight: Any = field(default_factory=weight)
    calls: int = 0

    def mean(self, x: Any) -> Any:
        self.calls += 1
        return tf.reduce_mean(x * self.weight)


def gradient(loss: Any, variable: Any, reduction: str = "mean") -> Any:
    [found], _ = ab.gradients(loss, [variable], X, reduction=reduction, micro_batch_size=3)
    return found.numpy().tolist()


METHODS = pytest.mark.parametrize("kind", [Trainer, TrainedModel, Unhashable])


@METHODS
def test_a_method_is_traced_once(kind: Any) -> None:
    owner = kind()
    found = [gradient(owner.mean, owner.weight) for _ in range(4)]
    assert owner.calls == 1
    assert found == [[2.5, 3.0]] * 4


@METHODS
def test_a_method_does_not_keep_its_owner_alive(kind: Any) -> None:
    owner = kind()
    gradient(owner.mean, owner.weight)
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None


def test_two_methods_of_one_object_have_a_trace_each() -> None:
    owner = Trainer()
    assert gradient(owner.mean, owner.weight) == [2.5, 3.0]
    assert gradient(owner.total, owner.weight, "sum") == [30.0, 36.0]
    assert owner.calls == 2


def test_two_objects_of_one_class_have_a_trace_each() -> None:
    one, other = Trainer(), Trainer()
    for owner in (one, other, one, other):
        gradient(owner.mean, owner.weight)
    assert (one.calls, other.calls) == (1, 1)


def test_an_object_and_its_methods_have_a_trace_each() -> None:
    owner = CallableTrainer()
    for _ in range(2):
        assert gradient(owner, owner.weight) == [2.5, 3.0]
        assert gradient(owner.total, owner.weight, "sum") == [30.0, 36.0]
    assert owner.calls == 2


def test_an_object_that_cannot_be_referred_to_weakly_has_gradients_all_the_same() -> None:
    class Slotted:
        __slots__ = ("weight",)

        def __init__(self) -> None:
            self.weight = weight()

        def mean(self, x: Any) -> Any:
            return tf.reduce_mean(x * self.weight)

    owner = Slotted()
    assert gradient(owner.mean, owner.weight) == [2.5, 3.0]


def test_a_function_is_traced_once_and_not_kept_alive() -> None:
    owner = Trainer()
    loss = functools.partial(Trainer.mean, owner)
    for _ in range(3):
        gradient(loss, owner.weight)
    assert owner.calls == 1
    gone = weakref.ref(loss)
    del loss
    gc.collect()
    assert gone() is None


def test_what_changes_is_followed_in_a_variable_and_in_the_batch_and_a_number_of_python_is_not() -> None:
    scales = {"number": 1.0, "variable": tf.Variable(1.0)}
    trained = weight()

    def loss(x: Any, scale: Any) -> Any:
        return tf.reduce_mean(x * trained) * scales["number"] * scales["variable"] * tf.reduce_mean(scale)

    def found(scale: float) -> float:
        batch = (X, tf.fill([6], scale))
        return float(ab.gradients(loss, [trained], batch, reduction="mean", micro_batch_size=2)[1])

    first = found(1.0)
    scales["number"] = 100.0
    assert found(1.0) == first
    scales["variable"].assign(2.0)
    assert found(3.0) == pytest.approx(6 * first)
