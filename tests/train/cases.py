"""Small models of every kind that a batch may be split for, each with data and a compiled loss."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras import layers, ops

ROWS = 50
BATCH = 21
"""50 rows are batches of 21, 21 and 8: the last one is short."""

WIDTH = 5
LENGTH = 6
WORDS = 12


@dataclass(frozen=True)
class Case:
    """A model, and what it is trained on: x, y and perhaps more arguments of `fit`."""

    name: str
    build: Callable[[], Any]
    data: Callable[[], dict[str, Any]]

    def __str__(self) -> str:
        return self.name


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def floats(*shape: int) -> Any:
    return rng().normal(size=(ROWS, *shape))


def words() -> Any:
    """Sentences of different lengths, the longest in the first batch: zeros pad them."""
    made = rng().integers(1, WORDS, (ROWS, LENGTH))
    lengths = rng().integers(1, LENGTH + 1, ROWS)
    return made * (np.arange(LENGTH) < lengths[:, None])


def table(**more: Any) -> dict[str, Any]:
    return {"x": floats(WIDTH), "y": floats(2), **more}


def weights(*shape: int) -> Any:
    return rng().uniform(0.1, 3.0, (ROWS, *shape))


def dense(**options: Any) -> Any:
    return keras.Sequential(
        [
            keras.Input((WIDTH,)),
            layers.Dense(7, activation="tanh", **options),
            layers.Dense(2),
        ]
    )


def compiled(model: Any, loss: Any = "mse", optimizer: Any = None, **options: Any) -> Any:
    model.compile(optimizer or keras.optimizers.SGD(0.1, momentum=0.9), loss, **options)
    return model


def with_optimizer(name: str, **options: Any) -> Callable[[], Any]:
    return lambda: compiled(dense(), optimizer=getattr(keras.optimizers, name)(**options))


def tagger(loss: Any, optimizer: Any = None) -> Any:
    """One label per word, padding masked."""
    model = keras.Sequential(
        [
            keras.Input((LENGTH,), dtype="int32"),
            layers.Embedding(WORDS, 4, mask_zero=True),
            layers.Dense(4, activation="tanh"),
            layers.Dense(3),
        ]
    )
    return compiled(model, loss, optimizer)


def tags(**more: Any) -> dict[str, Any]:
    return {"x": words(), "y": rng().integers(0, 3, (ROWS, LENGTH)), **more}


def crossentropy(**options: Any) -> Any:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True, **options)


def classifier(optimizer: Any, *, regularizer: Any = None) -> Any:
    """Words far apart in a large table: its gradients are slices."""
    model = keras.Sequential(
        [
            keras.Input((LENGTH,), dtype="int32"),
            layers.Embedding(WORDS, 4, embeddings_regularizer=regularizer),
            layers.GlobalAveragePooling1D(),
            layers.Dense(2),
        ]
    )
    return compiled(model, optimizer=optimizer)


def two_masks() -> Any:
    """Two outputs whose masks differ, with weights."""
    left, right = keras.Input((LENGTH,), name="left"), keras.Input((LENGTH,), name="right")
    shared = layers.Embedding(WORDS, 4, mask_zero=True)
    outputs = {
        "a": layers.Dense(3, name="a")(layers.Dense(3, activation="tanh")(shared(left))),
        "b": layers.Dense(3, name="b")(layers.Dense(3, activation="tanh")(shared(right))),
    }
    model = keras.Model({"left": left, "right": right}, outputs)
    losses = {"a": crossentropy(), "b": crossentropy(reduction="mean_with_sample_weight")}
    return compiled(model, losses, loss_weights={"a": 0.3, "b": 2.0})


def two_masks_data() -> dict[str, Any]:
    sentences = words()
    return {
        "x": {"left": sentences, "right": sentences[::-1].copy()},
        "y": {"a": tags()["y"], "b": tags()["y"][::-1].copy()},
        "sample_weight": {"a": weights(LENGTH), "b": weights(LENGTH)[::-1].copy()},
    }


def two_masks_of_one_layer() -> Any:
    """Two outputs whose masks differ and whose names do not: one layer makes both."""
    left, right = keras.Input((LENGTH,)), keras.Input((LENGTH,))
    shared, tagged = layers.Embedding(WORDS, 4, mask_zero=True), layers.Dense(3)
    return compiled(keras.Model([left, right], [tagged(shared(left)), tagged(shared(right))]), crossentropy())


def two_masks_of_one_layer_data() -> dict[str, Any]:
    given = two_masks_data()
    return {"x": list(given["x"].values()), "y": list(given["y"].values())}


def two_functions_of_one_layer() -> Any:
    """Two losses of the same name, of which nothing declares how they add up."""
    left, right, shared = keras.Input((WIDTH,)), keras.Input((WIDTH,)), layers.Dense(2)
    model = keras.Model([left, right], [shared(left), shared(right)])
    return compiled(model, [mean_of_squares, sum_of_squares])


def two_outputs() -> Any:
    """A mean and a sum beside each other, an L2 and an activity regulariser, two inputs."""
    one, other = keras.Input((WIDTH,)), keras.Input((3,))
    hidden = layers.Dense(6, activation="tanh", kernel_regularizer=keras.regularizers.L2(0.01))(
        layers.Concatenate()([one, other])
    )
    active = layers.Dense(4, activity_regularizer=keras.regularizers.L2(0.02))(hidden)
    model = keras.Model([one, other], [layers.Dense(2, name="p")(active), layers.Dense(1, name="q")(hidden)])
    losses = [keras.losses.MeanSquaredError(), keras.losses.MeanAbsoluteError(reduction="sum")]
    return compiled(model, losses, keras.optimizers.Adam(0.01), loss_weights=[1.0, 0.05])


def two_outputs_data() -> dict[str, Any]:
    return {"x": [floats(WIDTH), floats(3)], "y": [floats(2), floats(1)]}


def attention() -> Any:
    inputs = keras.Input((LENGTH,), dtype="int32")
    embedded = layers.Embedding(WORDS, 4)(inputs)
    attended = layers.MultiHeadAttention(2, 3)(embedded, embedded)
    outputs = layers.Dense(2)(layers.GlobalAveragePooling1D()(layers.LayerNormalization()(attended)))
    return compiled(keras.Model(inputs, outputs), optimizer=keras.optimizers.Adam(0.01))


def recurrent() -> Any:
    inputs = keras.Input((LENGTH,), dtype="int32")
    read = layers.SimpleRNN(4, unroll=True)(layers.Embedding(WORDS, 4, mask_zero=True)(inputs))
    return compiled(keras.Model(inputs, layers.Dense(2)(read)))


def convolution() -> Any:
    model = keras.Sequential(
        [
            keras.Input((6, 6, 1)),
            layers.Conv2D(3, 3),
            layers.GroupNormalization(3),
            layers.Flatten(),
            layers.Dense(2),
        ]
    )
    return compiled(model, optimizer=keras.optimizers.RMSprop(0.01))


def mean_of_squares(y_true: Any, y_pred: Any) -> Any:
    return ops.mean(ops.square(y_true - y_pred))


def sum_of_squares(y_true: Any, y_pred: Any) -> Any:
    return ops.sum(ops.square(y_true - y_pred)) / 50


class AddsLosses(layers.Layer):  # type: ignore[misc]
    """One loss that is a mean over samples, and one that is a sum."""

    def call(self, inputs: Any) -> Any:
        self.add_loss(ops.mean(ops.square(inputs)))
        self.add_loss(0.01 * ops.sum(ops.abs(inputs)))
        return inputs


def adding_losses() -> Any:
    inputs = keras.Input((WIDTH,))
    return compiled(keras.Model(inputs, layers.Dense(2)(AddsLosses()(layers.Dense(4)(inputs)))))


class Subclassed(keras.Model):  # type: ignore[misc]
    """Layers made in the constructor, one of which no loss depends on, and a loss of its own."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.first = layers.Dense(6, activation="tanh", kernel_regularizer="l2")
        self.second = layers.Dense(2)

    def call(self, inputs: Any) -> Any:
        return self.second(self.first(inputs))

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        squares = ops.square(y - y_pred)
        if self.kind == "mean":
            return ops.mean(squares) + sum(self.losses)
        total = 0.05 * ops.sum(squares)
        return total + sum(self.losses) if self.kind == "sum and penalty" else total


class Unused(keras.Model):  # type: ignore[misc]
    """A branch that no gradient reaches."""

    def __init__(self) -> None:
        super().__init__()
        self.used = layers.Dense(2)
        self.unused = layers.Dense(3)

    def call(self, inputs: Any) -> Any:
        self.unused(inputs)
        return self.used(inputs)


def case(name: str, build: Callable[[], Any], data: Callable[[], dict[str, Any]] = table) -> Case:
    return Case(name, build, data)


CASES = [
    case("a mean", lambda: compiled(dense())),
    case(
        "a sum",
        lambda: compiled(dense(), keras.losses.MeanSquaredError(reduction="sum"), keras.optimizers.SGD(1e-3)),
    ),
    case(
        "no reduction",
        lambda: compiled(dense(), keras.losses.MeanSquaredError(reduction=None), keras.optimizers.SGD(1e-3)),
    ),
    case("sample weights", lambda: compiled(dense()), lambda: table(sample_weight=weights())),
    case(
        "a weighted mean",
        lambda: compiled(dense(), keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")),
        lambda: table(sample_weight=weights()),
    ),
    case(
        "class weights",
        lambda: compiled(dense(), crossentropy()),
        lambda: table(y=rng().integers(0, 2, ROWS), class_weight={0: 0.2, 1: 3.0}),
    ),
    case("a mask", lambda: tagger(crossentropy()), tags),
    case("a mask and weights", lambda: tagger(crossentropy()), lambda: tags(sample_weight=weights(LENGTH))),
    case(
        "a mask and a weighted mean",
        lambda: tagger(crossentropy(reduction="mean_with_sample_weight")),
        lambda: tags(sample_weight=weights(LENGTH)),
    ),
    case("an ignored class", lambda: tagger(crossentropy(ignore_class=2)), tags),
    case("two masks", two_masks, two_masks_data),
    case("two masks of one layer", two_masks_of_one_layer, two_masks_of_one_layer_data),
    case("two outputs with regularisers", two_outputs, two_outputs_data),
    case(
        "a mean and a sum of the same name",
        two_functions_of_one_layer,
        lambda: {"x": [floats(WIDTH), -floats(WIDTH)], "y": [floats(2), floats(2)]},
    ),
    case("clipnorm", with_optimizer("SGD", learning_rate=0.5, clipnorm=0.05)),
    case("global clipnorm", with_optimizer("Adam", learning_rate=0.05, global_clipnorm=0.01)),
    case("clipvalue", with_optimizer("SGD", learning_rate=0.5, clipvalue=0.01)),
    case("AdamW", with_optimizer("AdamW", learning_rate=0.01, weight_decay=0.1)),
    case(
        "a schedule",
        lambda: compiled(
            dense(), optimizer=keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.3, 2, 0.7))
        ),
    ),
    case(
        "weight averages",
        with_optimizer("SGD", learning_rate=0.1, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=3),
    ),
    case("constraints", lambda: compiled(dense(kernel_constraint=keras.constraints.MaxNorm(0.5)))),
    case("slices", lambda: classifier(keras.optimizers.Adam(0.01)), lambda: table(x=words())),
    case(
        "slices clipped and regularised",
        lambda: classifier(keras.optimizers.Adam(0.01, clipnorm=0.01), regularizer="l2"),
        lambda: table(x=words()),
    ),
    case("attention", attention, lambda: table(x=words())),
    case("a recurrence", recurrent, lambda: table(x=words())),
    case("a convolution", convolution, lambda: table(x=floats(6, 6, 1))),
    case("a function that returns a mean", lambda: compiled(dense(), mean_of_squares)),
    case("a function that returns a sum", lambda: compiled(dense(), sum_of_squares)),
    case("added losses", adding_losses),
    case("compute_loss as a mean", lambda: compiled(Subclassed("mean"), None)),
    case("compute_loss as a sum", lambda: compiled(Subclassed("sum"), None)),
    case("compute_loss as a sum with a penalty", lambda: compiled(Subclassed("sum and penalty"), None)),
    case("a variable without gradient", lambda: compiled(Unused())),
]
