"""Trainings in processes of their own: one alone, or several workers under `anybatch launch`."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SCRIPT = Path(__file__).with_name("launched_training.py")
HUNGRY = SCRIPT.with_name("launched_hungry.py")
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


def script_in(folder: Path) -> Path:
    """Return a copy of the training script: a launch keeps its papers beside it."""
    script = folder / SCRIPT.name
    if not script.exists():
        shutil.copy(SCRIPT, script)
    return script


def run(command, timeout=300, **environment) -> Done:
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=os.environ | QUIET | environment,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def alone(folder, *arguments) -> Done:
    return run([script_in(folder), *arguments])


def launched(folder, workers, *arguments, options=(), timeout=300) -> Done:
    command = ["-m", "anybatch", "launch", "--workers", workers, *options, script_in(folder), *arguments]
    return run(command, timeout)


def start_launch(folder, workers, *arguments, options=(), out=subprocess.PIPE, err=subprocess.PIPE):
    """Start several workers, and go on."""
    command = ["-m", "anybatch", "launch", "--workers", workers, *options, script_in(folder), *arguments]
    return subprocess.Popen(
        [sys.executable, *map(str, command)], stdout=out, stderr=err, text=True, env=os.environ | QUIET
    )


def start_member(folder, addresses, rank, *arguments, options=(), prefix=()):
    """Start one worker of a cluster that somebody else has set up."""
    config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}}
    command = [sys.executable, "-m", "anybatch", "launch", *options, script_in(folder), *arguments]
    return subprocess.Popen(
        [*prefix, *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | QUIET | {"TF_CONFIG": json.dumps(config)},
    )


def member(folder, addresses, rank, *arguments, options=()) -> Done:
    """Run one worker of such a cluster to its end."""
    worker = start_member(folder, addresses, rank, *arguments, options=options)
    out, err = worker.communicate(timeout=300)
    return Done(worker.returncode, out, err)


def updated(worker, update) -> None:
    """Wait until a training has made an update."""
    for line in worker.stdout:
        if line.rstrip().endswith(f"update {update}"):
            return
    raise AssertionError(f"it ended before update {update}: {worker.stderr.read()}")


def in_namespace(name) -> list[str]:
    return ["ip", "netns", "exec", name]


def hungry_in(folder: Path) -> Path:
    return Path(shutil.copy(HUNGRY, folder))


def results(file) -> dict:
    with np.load(file) as loaded:
        return {name: loaded[name] for name in loaded.files}


def largest_difference(one: dict, other: dict) -> float:
    """Return by how much two trainings differ, relative to what they came to."""
    assert set(one) == set(other)
    return max(
        float(np.max(np.abs(one[name] - other[name])) / (np.max(np.abs(other[name])) + 1e-12)) for name in one
    )
