"""Nothing declares how such losses add up over parts: it is found out, whatever the first part looks like."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import anybatch as ab

ROWS = 32
RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(ROWS, 3)).astype("float32")
Y = RANDOM.normal(size=(ROWS, 1)).astype("float32")


def squares(y, predicted):
    return tf.reduce_sum((y - predicted) ** 2)


def root(y, predicted):
    return tf.sqrt(tf.reduce_mean((y - predicted) ** 2))


def dense(*layers, loss, optimizer=None, **options):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((3,)), *layers, keras.layers.Dense(1)])
    model.compile(optimizer or keras.optimizers.SGD(1e-3), loss=loss, **options)
    return model


def trained(model, part, x=X, y=Y, **options):
    history = ab.fit(model, x, y, batch_size=ROWS, micro_batch_size=part, shuffle=False, verbose=0, **options)
    return history, model.get_weights()


def same(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


class OwnLoss(keras.Model):
    """A sum over samples, and a penalty that is a thousandth of it."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1, kernel_regularizer=keras.regularizers.L2(1e-3))

    def call(self, x):
        return self.dense(x)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return squares(y + 50.0, y_pred) + tf.add_n(self.losses)


def own_loss():
    keras.utils.set_random_seed(1)
    model = OwnLoss()
    model.compile(keras.optimizers.SGD(1e-4))
    return model


CASES = {
    "a sum that claims to be a mean": lambda: dense(loss=squares),
    "a sum with a small penalty inside": own_loss,
    "several losses on one output, of which Keras minimises the first": lambda: dense(loss=["mse", "mae"]),
}


@pytest.mark.parametrize("part", [1, 2, 5])
@pytest.mark.parametrize("case", CASES)
def test_parts_of_any_size_give_the_update_of_the_whole_batch(case, part):
    whole = CASES[case]()
    whole.fit(X, Y, batch_size=ROWS, shuffle=False, verbose=0, epochs=3)
    history, weights = trained(CASES[case](), part, epochs=3)
    same(weights, whole.get_weights())
    assert history.plan.exact


def test_a_plan_that_was_made_before_changes_nothing():
    def model():
        return dense(loss=squares, metrics=[root])

    planned = model()
    assert ab.plan(planned, (X, Y), batch_size=ROWS, memory="16GiB").parts == 1
    history, weights = trained(planned, 4)
    whole, expected = trained(model(), ROWS)
    same(weights, expected)
    # a metric that does not add up sees whole batches
    assert history.history["root"] == pytest.approx(whole.history["root"], rel=1e-5)


def test_a_sum_behind_batch_normalization_stays_a_sum():
    def model():
        return dense(keras.layers.Dense(4), keras.layers.BatchNormalization(), loss=squares)

    whole, _ = trained(model(), ROWS)
    split, _ = trained(model(), ROWS // 4)
    assert not split.plan.exact
    # normalised by part, so not equal; but not a quarter either
    assert split.history["loss"] == pytest.approx(whole.history["loss"], rel=0.2)


@pytest.mark.parametrize("reductions", [("sum_over_batch_size", "sum"), ("sum", "sum_over_batch_size")])
def test_embeddings_that_several_kinds_of_losses_share_get_one_row_per_lookup(reductions):
    def model():
        keras.utils.set_random_seed(1)
        words = keras.Input((5,), dtype="int32")
        found = keras.layers.Embedding(10, 4)(words)
        model = keras.Model(words, [keras.layers.Dense(1)(found), keras.layers.Dense(1)(found)])
        losses = [keras.losses.MeanSquaredError(reduction=one) for one in reductions]
        model.compile(keras.optimizers.Adam(0.1, epsilon=1e-3), loss=losses)
        return model

    words = RANDOM.integers(0, 10, size=(ROWS, 5))
    wanted = [RANDOM.normal(size=(ROWS, 5, 1)) for _ in range(2)]
    _, whole = trained(model(), ROWS, words, wanted, epochs=3)
    history, split = trained(model(), 8, words, wanted, epochs=3)
    for one, other in zip(split, whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    assert history.plan.exact


def test_embeddings_that_losses_share_in_part_are_not_called_exact():
    keras.utils.set_random_seed(1)
    words, more = (keras.Input((2,), dtype="int32") for _ in range(2))
    table, flat = keras.layers.Embedding(10, 4), keras.layers.Flatten()
    one, other = flat(table(words)), flat(table(more))
    outputs = [keras.layers.Dense(1)(keras.layers.Concatenate()([one, other])), keras.layers.Dense(1)(other)]
    model = keras.Model([words, more], outputs)
    model.compile("adam", loss=["mse", keras.losses.MeanSquaredError(reduction="sum")])
    given = [RANDOM.integers(0, 10, size=(ROWS, 2)) for _ in range(2)]
    history, _ = trained(model, 8, given, [Y, Y])
    assert not history.plan.exact
    assert "divided apart" in " ".join(history.plan.notes)


@pytest.mark.parametrize("labels", ["equally far", "as they are"])
def test_a_root_of_a_mean_is_not_taken_for_a_mean_of_roots(labels):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile("sgd", loss=root)
    history, _ = trained(model, 8, y=np.sign(Y) if labels == "equally far" else Y)
    assert not history.plan.exact
    assert "neither a sum nor a mean" in " ".join(history.plan.notes)


def test_a_term_that_is_zero_at_first_is_said_to_be_untold():
    class Annealed(keras.layers.Layer):
        def call(self, x):
            self.add_loss(0.0 * tf.reduce_sum(x**2))
            return x

    history, _ = trained(dense(Annealed(), loss="mse"), 8)
    assert not history.plan.exact
    assert "zero at first" in " ".join(history.plan.notes)


def test_rows_that_are_undefined_are_said_to_tell_nothing():
    x = np.where(np.arange(ROWS)[:, None] < 8, np.nan, X)
    history, _ = trained(dense(loss=squares), 8, x=x)
    assert not history.plan.exact
    told = " ".join(history.plan.notes)
    assert "zero at first, or undefined" in told
    assert "whether a layer mixes samples cannot be told" in told


def test_one_infinite_number_does_not_hide_that_rows_depend_on_each_other():
    mixing = keras.layers.Lambda(lambda x: x - tf.reduce_mean(x, axis=0))
    endless = keras.layers.Lambda(lambda x: x / tf.constant([[1.0, 1.0, 0.0]]))
    model = keras.Sequential([keras.Input((3,)), mixing, keras.layers.Dense(3, name="made"), endless])
    model.compile("sgd", "mse")
    history, _ = trained(model, 8, y=X)
    assert "depends on the other samples" in " ".join(history.plan.notes)


def test_a_model_that_diverges_while_it_is_planned_is_split_by_what_it_was_before(tmp_path, monkeypatch):
    # a plan from another time would need no updates
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    whole, planned = (dense(loss=squares, optimizer=keras.optimizers.SGD(1e30)) for _ in range(2))
    ab.plan(planned, (X, Y), batch_size=ROWS, memory="64GiB")
    for model in (whole, planned):
        model.optimizer.learning_rate = 1e-3
    history, weights = trained(planned, 8)
    assert history.plan.exact
    same(weights, trained(whole, ROWS)[1])


class OnlyInTraining(keras.layers.Layer):
    def call(self, x, training=False):
        if training:
            self.add_loss(tf.reduce_mean(x**2))
        return x


def test_losses_that_are_added_in_training_only_do_not_meet_those_of_a_test():
    model = dense(OnlyInTraining(), loss="mse")
    first, _ = trained(model, 8, validation_data=(X, Y))
    # another part size has the update traced anew, behind a test
    again = ab.fit(model, X[:20], Y[:20], batch_size=10, micro_batch_size=3, verbose=0)
    assert first.history["loss"][0] > first.history["val_loss"][0]
    assert np.isfinite(again.history["loss"][0])
