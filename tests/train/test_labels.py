"""What a loss divides by may depend on labels and weights: found, though the first rows do not show it."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import anybatch as ab

ROWS = 32
RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(ROWS, 3)).astype("float32")
Y = RANDOM.uniform(0.5, 2.0, size=(ROWS, 1)).astype("float32")
SIGNS = (X[:, :1] > 0).astype("float32")
CLASSES = RANDOM.integers(0, 4, size=ROWS)
PLACES = np.eye(4, dtype="float32")[CLASSES]
WORDS = RANDOM.integers(1, 10, size=(ROWS, 5))
TAGS = RANDOM.integers(1, 7, size=(ROWS, 5))


def compiled(*layers, loss=None):
    keras.utils.set_random_seed(1)
    model = keras.Sequential(layers)
    model.compile(keras.optimizers.SGD(1e-3), loss=loss)
    return model


def dense(loss):
    return compiled(keras.Input((3,)), keras.layers.Dense(1), loss=loss)


def classifier(loss, activation=None):
    return compiled(keras.Input((3,)), keras.layers.Dense(4, activation=activation), loss=loss)


def tagger(loss):
    return compiled(keras.Input((5,)), keras.layers.Embedding(10, 4), keras.layers.Dense(7), loss=loss)


def plan_of(model, x, y, part=8, **options):
    history = ab.fit(model, x, y, batch_size=ROWS, micro_batch_size=part, shuffle=False, verbose=0, **options)
    return history.plan


def mean_where(counts, errors):
    counts = tf.cast(counts, errors.dtype)
    return tf.math.divide_no_nan(tf.reduce_sum(tf.where(counts > 0, errors, 0.0)), tf.reduce_sum(counts))


def words_masked(y, predicted):
    """As in TensorFlow's tutorial of a transformer."""
    apart = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)
    return mean_where(y != 0, apart(y, predicted))


class OwnMask(keras.Sequential):
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return mean_where(y != 0, (y - y_pred) ** 2)


def own_mask():
    model = OwnMask([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd")
    return model


MASKED = {
    "zeros": lambda: (dense(lambda y, p: mean_where(y != 0, (y - p) ** 2)), X, Y),
    "minus ones": lambda: (dense(lambda y, p: mean_where(y != -1, (y - p) ** 2)), X, Y),
    "undefined": lambda: (dense(lambda y, p: mean_where(~tf.math.is_nan(y), (y - p) ** 2)), X, Y),
    "words": lambda: (tagger(words_masked), WORDS, TAGS),
    "in compute_loss": lambda: (own_mask(), X, Y),
}


@pytest.mark.parametrize("part", [2, 8])
@pytest.mark.parametrize("case", MASKED)
def test_a_mask_of_labels_is_found_where_the_first_rows_have_nothing_to_mask(case, part):
    plan = plan_of(*MASKED[case](), part)
    assert not plan.exact
    assert "depends on the labels" in " ".join(plan.notes)


def mean_of(loss, **options):
    return lambda y, predicted: tf.reduce_mean(loss(y, predicted, **options))


def mean_of_words_of_each_row(y, predicted):
    counts = tf.cast(y != 0, "float32")
    return tf.reduce_mean(
        tf.math.divide_no_nan(
            tf.reduce_sum(tf.reduce_sum(predicted**2, -1) * counts, -1), tf.reduce_sum(counts, -1)
        )
    )


classes, places = keras.losses.sparse_categorical_crossentropy, keras.losses.categorical_crossentropy
SOUND = {
    **{
        name: (lambda name=name: (dense(name), X, Y))
        for name in ("mse", "mae", "huber", "log_cosh", "mape", "msle", "hinge", "poisson")
    },
    "signs": lambda: (dense(keras.losses.BinaryCrossentropy(from_logits=True)), X, SIGNS),
    "places": lambda: (classifier("categorical_crossentropy", "softmax"), X, PLACES),
    "classes": lambda: (classifier("sparse_categorical_crossentropy", "softmax"), X, CLASSES),
    "a mean of squares": lambda: (dense(mean_of(keras.losses.mean_squared_error)), X, Y),
    "a sum of squares": lambda: (dense(lambda y, p: tf.reduce_sum((y - p) ** 2)), X, Y),
    "a mean of relative errors": lambda: (dense(mean_of(keras.losses.mean_absolute_percentage_error)), X, Y),
    "a mean of logarithms": lambda: (dense(lambda y, p: tf.reduce_mean((tf.math.log(y) - p) ** 2)), X, Y),
    "a mean of huber": lambda: (dense(mean_of(keras.losses.huber)), X, Y),
    "a mean of signs": lambda: (dense(mean_of(keras.losses.binary_crossentropy, from_logits=True)), X, SIGNS),
    "a mean that Keras makes": lambda: (dense(lambda y, p: 2 * keras.losses.MeanSquaredError()(y, p)), X, Y),
    "a mean of classes": lambda: (classifier(mean_of(classes, from_logits=True)), X, CLASSES),
    "a mean of classes by softmax": lambda: (classifier(mean_of(classes), "softmax"), X, CLASSES),
    "a mean of places": lambda: (classifier(mean_of(places, from_logits=True)), X, PLACES),
    "a mean of places by softmax": lambda: (classifier(mean_of(places), "softmax"), X, PLACES),
    "a mean of words": lambda: (tagger(mean_of(classes, from_logits=True)), WORDS, TAGS),
    "a mean of each row's words": lambda: (tagger(mean_of_words_of_each_row), WORDS, TAGS),
}


@pytest.mark.parametrize("case", SOUND)
def test_sound_losses_are_found_exact(case):
    plan = plan_of(*SOUND[case]())
    assert plan.exact, plan.notes
    assert not plan.notes


@pytest.mark.parametrize("kind", [np.float64, np.float16, np.int8, np.uint8, bool])
def test_labels_of_any_kind_are_tried(kind):
    plain = plan_of(dense(lambda y, p: tf.reduce_mean((y - p) ** 2)), X, SIGNS.astype(kind))
    assert plain.exact, plain.notes
    masked, _, _ = MASKED["zeros"]()
    assert not plan_of(masked, X, np.ones_like(SIGNS).astype(kind)).exact


def test_what_was_found_without_weights_is_not_believed_with_weights():
    model = dense(lambda y, p: tf.reduce_mean((y - p) ** 2))
    # the first rows weigh the same
    weights = np.maximum(8.0, np.arange(ROWS, dtype="float32"))
    assert plan_of(model, X, Y).exact
    weighted = plan_of(model, X, Y, sample_weight=weights)
    assert not weighted.exact
    assert "unequal sample weights" in " ".join(weighted.notes)
    assert plan_of(model, X, Y).exact


def test_a_loss_per_sample_is_exact_with_weights():
    model = dense(lambda y, p: (y - p) ** 2)
    assert plan_of(model, X, Y, sample_weight=np.arange(ROWS, dtype="float32")).exact


def test_weights_of_what_is_validated_on_change_nothing_in_training():
    found = []
    for held_back in [(X, Y), (X, Y, np.arange(ROWS, dtype="float32"))]:
        model = dense(lambda y, p: tf.reduce_sum((y - p) ** 2))
        assert plan_of(model, X, Y, epochs=3, validation_data=held_back).exact
        found.append(model.get_weights())
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
