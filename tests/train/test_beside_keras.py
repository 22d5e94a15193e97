"""What Keras' own accumulation does with the same batches, and what rounding does."""

import json
import os
import subprocess
import sys
from typing import Any

import keras
import pytest

from tests.train import mixed
from tests.train.cases import CASES, ROWS, Case, compiled, dense, table
from tests.train.update_laws import PARTS, Trained, largest_relative_difference, permuted_within_batches

QUICK = {"a mean", "two masks", "attention"}
FEW_QUICKLY = [
    pytest.param(case, marks=() if case.name in QUICK else pytest.mark.soak, id=str(case)) for case in CASES
]
MIXED = {"a mean", "two masks"}
STATED = {"mixed_float16": 0.02, "mixed_bfloat16": 0.2}
"""By how much of its largest number a weight differs at most after 21 updates: `docs/concepts/exactness.md`
says the same."""


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


@pytest.mark.parametrize("case", FEW_QUICKLY)
def test_in_single_precision_parts_differ_no_more_than_a_permutation_of_the_samples(case: Case) -> None:
    trained = Trained(case)
    whole, _ = trained.after("auto")
    permuted = [trained.after("auto", permuted_within_batches(ROWS, seed))[0] for seed in (1, 2)]
    noise = max(largest_relative_difference(one, whole) for one in permuted)
    for micro in PARTS.values():
        split, _ = trained.after(micro)
        assert largest_relative_difference(split, whole) <= 3 * noise


@pytest.mark.long
@pytest.mark.parametrize("policy", STATED)
def test_in_mixed_precision_parts_differ_no_more_than_is_stated(policy: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.train.mixed", policy, *MIXED],
        env={**os.environ, **mixed.ALLOWED[policy]},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    furthest = {name: max(found.values()) for name, found in json.loads(done.stdout).items()}
    print(policy, ", ".join(f"{name} {one:.1e}" for name, one in furthest.items()))
    assert set(furthest) == MIXED
    assert max(furthest.values()) <= STATED[policy]
