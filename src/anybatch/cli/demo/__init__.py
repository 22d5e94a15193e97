"""`anybatch demo`: the whole story on data that the demo makes itself."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer

from anybatch.cli.arguments import JsonOption
from anybatch.cli.failures import reported
from anybatch.cli.report import print_json

EXAMPLE = "Example:  anybatch demo --to demo"

MEMORY = "460MiB"
"""Plain Keras needs about 700 MiB for a batch of 512 of the demo's model."""

_BAR = "━"


@reported
def demo(
    to: Annotated[Path, typer.Option(metavar="FOLDER", help="Where data, scripts and reports go.")] = Path(
        "anybatch-demo"
    ),
    as_json: JsonOption = False,
) -> int:
    """Train a model in memory that does not hold its batch, on sorted and damaged data.

    Makes the data, diagnoses it, shows what becomes of plain Keras in a memory group that does not hold its
    batch (where no group can be made, its memory is watched instead), says so in one line, and trains the
    same model at the same batch size under the same limit. Takes a minute or two on two cores and needs
    TensorFlow.

    Exit code: 0 done, 2 could not be done, else that of the training with anybatch.
    """
    from anybatch.cli.demo.ending import ending_of

    stage = _Stage(to, as_json)
    if (to / "train").exists():
        raise FileExistsError(f"{to} holds a demo already; remove it, or name another folder with --to")
    (to / "train").mkdir(parents=True)
    _prepare(stage)
    look = ("--batch-size", "512", "--shuffle-buffer", "1000", "--html", "doctor.html")
    doctor = stage.show("doctor", "train/*.tfrecord", *look)
    stage.headline(f"plain Keras, batch 512, in {MEMORY}")
    keras = stage.show("run", "--memory", MEMORY, "with_keras.py")
    ending = ending_of(to / "with_keras.py", keras.code)
    stage.headline(str(ending))
    stage.headline(f"anybatch, the same model, the same batch of 512, the same {MEMORY}")
    ours = stage.show("run", "--memory", MEMORY, "--report", "run.html", "with_anybatch.py")
    history = json.loads((to / "history.json").read_text()) if ours.code == 0 else {}
    if as_json:
        plain = {**keras.events(), "verdict": str(ending), "of_memory": ending.of_memory}
        told = {"doctor": doctor.document(), "keras": plain, "anybatch": ours.events()}
        print_json({"folder": str(to), "memory": MEMORY, **told, "history": history})
    elif history:
        _plot(stage, history)
        stage.say(f"\nlook at {to}/doctor.html and {to}/run.html; the two scripts lie beside them")
    return ours.code


def _prepare(stage: "_Stage") -> None:
    """Make the data, damage it, and lay the scripts beside it."""
    from anybatch.cli.demo.data import damage, write_sorted_digits

    stage.headline("6,000 pictures, all of one class before the next, in 4 shards; one bit flips on the disk")
    train = stage.folder / "train"
    write_sorted_digits(train)
    shard = min(train.glob("*.tfrecord"))
    stage.say(f"byte {damage(shard):,} of {shard.name} is wrong now")
    for name in ("with_keras.py", "with_anybatch.py"):
        (stage.folder / name).write_text(files(__package__).joinpath(f"{name}.txt").read_text())


@dataclass(frozen=True, slots=True)
class _Shown:
    """How a command ended, and what it printed if that was for programs."""

    code: int
    printed: str

    def document(self) -> Any:
        """Return the one document that it printed."""
        return json.loads(self.printed)

    def events(self) -> dict[str, Any]:
        """Return its exit code and the events that it printed, one per line."""
        return {"exit_code": self.code, "events": [json.loads(line) for line in self.printed.splitlines()]}


@dataclass(frozen=True, slots=True)
class _Stage:
    """Where the demo is shown: on stdout, or for programs on stderr, with one document at the end."""

    folder: Path
    as_json: bool

    def say(self, text: str) -> None:
        """Print a line for people."""
        print(text, file=sys.stderr if self.as_json else sys.stdout, flush=True)

    def headline(self, text: str) -> None:
        """Print what comes next."""
        shown = sys.stderr if self.as_json else sys.stdout
        self.say(f"\n\033[1m{text}\033[0m" if shown.isatty() else f"\n{text}")

    def show(self, command: str, *words: str) -> _Shown:
        """Show a command and what it prints."""
        given = [command, *(["--json"] if self.as_json else []), *words]
        self.headline("$ anybatch " + " ".join(f"'{word}'" if "*" in word else word for word in given))
        ran = subprocess.run(
            [sys.executable, "-m", "anybatch", *given],
            cwd=self.folder,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore"},
            stdout=subprocess.PIPE if self.as_json else None,
            text=True,
            check=False,
        )
        return _Shown(ran.returncode, ran.stdout or "")


def _plot(stage: _Stage, history: dict[str, list[float]]) -> None:
    stage.headline("accuracy after each epoch")
    for epoch, accuracy in enumerate(history["accuracy"], 1):
        stage.say(f"  {epoch}  {_BAR * round(50 * accuracy):<50} {accuracy:.1%}")
