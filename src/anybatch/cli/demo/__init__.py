"""`anybatch demo`: the whole story on data that the demo makes itself."""

import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from anybatch.cli.failures import reported

EXAMPLE = "Example:  anybatch demo --to demo"

MEMORY = "460MiB"
"""Plain Keras needs about 700 MiB for a batch of 512 of the demo's model."""

_BAR = "━"


@reported
def demo(
    to: Annotated[Path, typer.Option(metavar="FOLDER", help="Where data, scripts and reports go.")] = Path(
        "anybatch-demo"
    ),
) -> int:
    """Train a model in memory that does not hold its batch, on sorted and damaged data.

    Makes the data, diagnoses it, shows plain Keras being killed in a memory group, and trains the same model
    at the same batch size in the same group. Takes a minute or two on two cores and needs TensorFlow.
    """
    from anybatch.cli.demo.data import damage, write_sorted_digits

    if (to / "train").exists():
        raise FileExistsError(f"{to} holds a demo already; remove it, or name another folder with --to")
    (to / "train").mkdir(parents=True)
    _headline("6,000 pictures, all of one class before the next, in 4 shards; one bit flips on the disk")
    write_sorted_digits(to / "train")
    shard = min((to / "train").glob("*.tfrecord"))
    print(f"byte {damage(shard):,} of {shard.name} is wrong now")
    for name in ("with_keras.py", "with_anybatch.py"):
        (to / name).write_text(files(__package__).joinpath(f"{name}.txt").read_text())
    _show(
        to,
        "doctor",
        "train/*.tfrecord",
        "--batch-size",
        "512",
        "--shuffle-buffer",
        "1000",
        "--html",
        "doctor.html",
    )
    _headline(f"plain Keras, batch 512, in {MEMORY}")
    _show(to, "run", "--memory", MEMORY, "with_keras.py")
    _headline(f"anybatch, the same model, the same batch of 512, the same {MEMORY}")
    code = _show(to, "run", "--memory", MEMORY, "--report", "run.html", "with_anybatch.py")
    if code == 0:
        _plot(json.loads((to / "history.json").read_text()))
        print(f"\nlook at {to}/doctor.html and {to}/run.html; the two scripts lie beside them")
    return code


def _show(folder: Path, *words: str) -> int:
    """Show a command and what it prints."""
    _headline("$ anybatch " + " ".join(f"'{word}'" if "*" in word else word for word in words))
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [sys.executable, "-m", "anybatch", *words], cwd=folder, env=quiet, check=False
    ).returncode


def _plot(history: dict[str, list[float]]) -> None:
    _headline("accuracy after each epoch")
    for epoch, accuracy in enumerate(history["accuracy"], 1):
        print(f"  {epoch}  {_BAR * round(50 * accuracy):<50} {accuracy:.1%}")


def _headline(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)
