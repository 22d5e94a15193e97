"""Memory runs out in the middle of a step, and nothing is lost."""

import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

from anybatch.train.exhaustion import is_exhaustion
from tests.train import hungry

QUICK = (("wide undisturbed", "wide middle"), ("heavy undisturbed", "heavy commit"))


@cache
def found(names: tuple[str, ...]) -> dict[str, Any]:
    """Return what came of training with capped memory; in a process of its own, as caps are for life."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.train.hungry", *names],
        env={**os.environ, **hungry.CAP},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def of(name: str) -> Any:
    """Return what came of one scenario; an exhaustion takes ten seconds, so `make soak` has most of them."""
    quick = next((pair for pair in QUICK if name in pair), None)
    return found(quick or tuple(one for one in hungry.SCENARIOS if one not in sum(QUICK, ())))[name]


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
    disturbed: str, undisturbed: str, phase: str
) -> None:
    one, other = of(disturbed), of(undisturbed)
    assert ["exhausted", phase] in one["events"]
    assert one["weights"] == pytest.approx(other["weights"], rel=1e-5, abs=1e-4)
    assert one["slots"] == pytest.approx(other["slots"], rel=1e-5, abs=1e-5)
    assert one["metrics"] == pytest.approx(other["metrics"], rel=1e-5)


@pytest.mark.soak
def test_validation_counts_every_row_once() -> None:
    one, other = of("validation"), of("validation undisturbed")
    assert ["exhausted", "test"] in one["events"]
    assert one["metrics"] == pytest.approx(other["metrics"], rel=1e-5)


@pytest.mark.soak
def test_one_sample_that_does_not_fit_is_said_and_changes_nothing() -> None:
    said = of("one sample")
    assert "does not fit" in said
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
