"""The update of the whole batch, out of parts."""

import pytest

from tests.train.cases import CASES, Case
from tests.train.update_laws import PARTS, Trained, largest_relative_difference


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_parts_give_the_update_of_the_whole_batch(case: Case) -> None:
    trained = Trained(case)
    whole, history = trained.after("auto")
    for parts, micro in PARTS.items():
        split, split_history = trained.after(micro)
        assert largest_relative_difference(split, whole) < 1e-9, parts
        assert split_history.plan.exact, split_history.plan.notes
        for name, values in history.history.items():
            assert split_history.history[name] == pytest.approx(values, rel=1e-6), (parts, name)
