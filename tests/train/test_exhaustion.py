"""Memory runs out in the middle of a step, and nothing is lost."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anybatch.train.exhaustion import is_exhaustion
from tests.train import hungry
from tests.train.kept_arrays import largest_differences, sums

QUICK = (("wide undisturbed", "wide middle"), ("heavy undisturbed", "heavy commit"))
ROUNDED = 1e-3
"""Of the largest number of an array: parts are added up in another order; 1.8e-4 was seen of a bias."""


class Outcomes:
    """What came of training with capped memory, and the arrays that it left in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._found: dict[str, Any] = {}

    def of(self, name: str) -> Any:
        """Return what came of one scenario; an exhaustion takes ten seconds: `make soak` has most of them."""
        if name not in self._found:
            quick = next((pair for pair in QUICK if name in pair), None)
            self._run(quick or tuple(one for one in hungry.SCENARIOS if one not in sum(QUICK, ())))
        return self._found[name]

    def differences(self, what: str, one: str, other: str) -> list[float]:
        """Return how far arrays of one scenario are from those of another, relative to the largest number."""
        return largest_differences(*(hungry.file_of(self.folder, name, what) for name in (one, other)))

    def sums(self, what: str, name: str) -> list[float]:
        """Return what each array of a scenario comes to."""
        return sums(hungry.file_of(self.folder, name, what))

    def _run(self, names: tuple[str, ...]) -> None:
        """In a process of its own, as caps are for life."""
        done = subprocess.run(
            [sys.executable, "-m", "tests.train.hungry", str(self.folder), *names],
            env={**os.environ, **hungry.CAP},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        self._found |= json.loads(done.stdout)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return Outcomes(tmp_path_factory.mktemp("arrays"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("disturbed", "undisturbed", "phase"),
    [
        ("wide middle", "wide undisturbed", "part"),
        ("heavy commit", "heavy undisturbed", "commit"),
        *(
            pytest.param(f"wide {moment}", "wide undisturbed", "part", marks=pytest.mark.soak)
            for moment in ("whole", "first", "last")
        ),
    ],
)
def test_training_ends_with_the_same_state_as_undisturbed(
    outcomes: Outcomes, disturbed: str, undisturbed: str, phase: str
) -> None:
    one, other = outcomes.of(disturbed), outcomes.of(undisturbed)
    assert ["exhausted", phase] in one["events"]
    for what, least in (("weights", 1e-4), ("slots", 1e-5)):
        assert max(outcomes.differences(what, disturbed, undisturbed)) < ROUNDED
        whole = outcomes.sums(what, undisturbed)
        assert outcomes.sums(what, disturbed) == pytest.approx(whole, rel=1e-5, abs=least)
    assert one["metrics"] == pytest.approx(other["metrics"], rel=1e-5)


@pytest.mark.soak
def test_validation_counts_every_row_once(outcomes: Outcomes) -> None:
    one, other = outcomes.of("validation"), outcomes.of("validation undisturbed")
    assert ["exhausted", "test"] in one["events"]
    assert one["metrics"] == pytest.approx(other["metrics"], rel=1e-5)


@pytest.mark.soak
def test_one_sample_that_does_not_fit_is_said_and_changes_nothing(outcomes: Outcomes) -> None:
    said = outcomes.of("one sample")
    assert re.search(r"of one sample, which takes [\d.]+ [KMG]iB at least, does not fit", said), said
    assert said.endswith("[unchanged]")


class ResourceExhaustedError(Exception):
    """What TensorFlow's is called."""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ResourceExhaustedError("OOM when allocating"), True),
        (MemoryError(), True),
        (RuntimeError("CUDA_ERROR_OUT_OF_MEMORY: out of memory"), True),
        (RuntimeError("shapes differ"), False),
        (ValueError("failed to allocate"), False),
    ],
)
def test_exhaustion_is_told_from_other_errors(error: Exception, expected: bool) -> None:
    assert is_exhaustion(error) is expected
