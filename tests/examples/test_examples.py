"""Every example trains, in its small form, and shows what it says."""

import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import anybatch as ab

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow as tf

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALL = {
    "train_by_hand": 20,
    "train_images": 2000,
    "train_table": 20_000,
    "train_text": 1000,
    "train_two_outputs": 2048,
    "train_unsupervised": 2000,
}
"""How many steps, records or rows."""


@dataclass
class Shown:
    """What an example has trained and printed."""

    histories: list[Any] = field(default_factory=list)
    losses: list[list[float]] = field(default_factory=list)
    """Of every training, the mean loss of its epoch so far after each update."""
    out: str = ""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> Iterator[Callable[[str], Shown]]:
    """Give what runs an example and watches over its trainings."""
    shown, fit = Shown(), ab.fit

    def watched(*args: Any, **options: Any) -> Any:
        losses: list[float] = []
        watch = keras.callbacks.LambdaCallback(
            on_train_batch_end=lambda batch, logs: losses.append(float(logs["loss"]))
        )
        shown.histories.append(fit(*args, **options, callbacks=[watch]))
        shown.losses.append(losses)
        return shown.histories[-1]

    def ran(name: str) -> Shown:
        keras.utils.set_random_seed(1)
        module(name).main(SMALL[name])
        shown.out = capsys.readouterr().out
        return shown

    monkeypatch.setattr(ab, "fit", watched)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # an example chooses an allocator for its own process, and this one has chosen already
    monkeypatch.setenv("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "true")
    before = tf.config.optimizer.get_experimental_options()
    yield ran
    undone = {"constant_folding": True, "arithmetic_optimization": True}
    tf.config.optimizer.set_experimental_options(undone | before)
    sys.modules.pop("example", None)


def module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location("example", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["example"] = made
    spec.loader.exec_module(made)
    return made


def assert_learns(shown: Shown) -> None:
    for losses in shown.losses:
        assert len(losses) > 1
        assert losses[-1] < losses[0]


def test_every_example_is_run_here() -> None:
    assert {file.stem for file in EXAMPLES.glob("train_*.py")} == set(SMALL)


def test_every_example_is_named_in_the_documentation() -> None:
    page = (EXAMPLES.parent / "docs" / "how-to" / "examples.md").read_text()
    assert set(re.findall(r"`examples/(\w+\.py)`", page)) == {file.name for file in EXAMPLES.glob("*.py")}


def test_a_loop_by_hand_learns(run: Callable[[str], Shown]) -> None:
    losses = [float(one) for one in re.findall(r"loss ([\d.]+)", run("train_by_hand").out)]
    assert losses == sorted(losses, reverse=True)
    assert len(losses) == 2


@pytest.mark.parametrize(
    ("name", "batch"),
    [("train_images", "500 = 4 x up to 128"), ("train_text", "256 = 4 x 64"), ("train_table", "512 whole")],
)
def test_what_comes_from_records_learns_and_is_exact(
    run: Callable[[str], Shown], name: str, batch: str
) -> None:
    shown = run(name)
    assert_learns(shown)
    assert all(history.plan.exact for history in shown.histories)
    assert batch in shown.out


def test_two_outputs_in_parts_are_those_of_whole_batches(run: Callable[[str], Shown]) -> None:
    shown = run("train_two_outputs")
    assert_learns(shown)
    assert [history.plan.exact for history in shown.histories] == [True, True]
    assert [history.plan.parts for history in shown.histories] == [1, 6]
    (difference,) = re.findall(r"largest difference to whole batches: (\S+)", shown.out)
    assert float(difference) < 1e-4


@pytest.mark.soak
def test_a_contrastive_model_is_told_that_it_cannot_be_split(run: Callable[[str], Shown]) -> None:
    shown = run("train_unsupervised")
    autoencoder, variational, rematerialised, split = (history.plan for history in shown.histories)
    assert autoencoder.exact
    assert not variational.exact
    assert not split.exact
    assert any("keras.remat" in note for note in split.notes)
    assert (rematerialised.parts, rematerialised.exact) == (1, True)
    whole, again = map(int, re.findall(r"predicted peak (\d+) MiB", shown.out))
    assert again < rematerialised.limit_bytes >> 20 < whole
