"""What Keras' own accumulation does with the same batches, and what rounding does."""

from typing import Any

import keras
import pytest

from tests.train.cases import CASES, ROWS, compiled, dense, table
from tests.train.update_laws import PARTS, Trained, largest_relative_difference, permuted_within_batches


@pytest.mark.usefixtures("double_precision")
def test_the_accumulation_of_keras_is_not_the_whole_batch() -> None:
    def trained(batch_size: int, **options: Any) -> list[Any]:
        keras.utils.set_random_seed(3)
        schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.7)
        model = compiled(dense(), optimizer=keras.optimizers.SGD(schedule, **options))
        given = table()
        model.fit(given["x"], given["y"], batch_size=batch_size, epochs=3, shuffle=False, verbose=0)
        return list(model.get_weights())

    # 50 rows: batches of 21, 21 and 8 against parts of 7 in threes, the leftover two kept for the next epoch
    whole, accumulated = trained(21), trained(7, gradient_accumulation_steps=3)
    assert largest_relative_difference(accumulated, whole) > 1e-3


@pytest.mark.usefixtures("double_precision")
def test_catching_the_error_and_halving_the_batch_is_another_training() -> None:
    def trained(batch_sizes: list[int]) -> list[Any]:
        keras.utils.set_random_seed(3)
        model, given = compiled(dense()), table()
        for batch_size in batch_sizes:
            model.fit(given["x"], given["y"], batch_size=batch_size, shuffle=False, verbose=0)
        return list(model.get_weights())

    assert largest_relative_difference(trained([20, 10, 10]), trained([20, 20, 20])) > 1e-2


@pytest.mark.parametrize(
    "case", [one for one in CASES if one.name in {"a mean", "two masks", "attention"}], ids=str
)
def test_in_single_precision_parts_differ_no_more_than_a_permutation_of_the_samples(case: Any) -> None:
    trained = Trained(case)
    whole, _ = trained.after("auto")
    permuted = [trained.after("auto", permuted_within_batches(ROWS, seed))[0] for seed in (1, 2)]
    noise = max(largest_relative_difference(one, whole) for one in permuted)
    for micro in PARTS.values():
        split, _ = trained.after(micro)
        assert largest_relative_difference(split, whole) <= 3 * noise
