"""Training that does not fit: who comes to the end, and with which weights.

The training process is a child of this one, because the limit may kill it.
"""

import hashlib
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.attempt import Outcome, Proof
from benchmarks.contenders.under_limit import ROOT, End, cause, trained_in_group, trained_with
from benchmarks.job import FINISHED, Job

SCRIPT = ROOT / "benchmarks" / "limited.py"
PLAIN = (sys.executable, str(SCRIPT))
SUPERVISED = (sys.executable, "-m", "anybatch", "run", "--json")
# what training may take besides what imports and data take; a whole batch needs about 300 MiB
ROOM_BYTES = 160 << 20


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a training process left behind."""

    weights: NDArray[np.float32]
    seconds: float
    updates: int
    records: int
    base_bytes: int  # what the process held before training
    first_seconds: float | None  # until the first batch was done: planning and tracing are in it
    later_rate: float | None  # samples/s from then on

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `limited.py` wrote."""
        with np.load(path) as kept:
            return cls(kept["weights"], **json.loads(str(kept["told"])))


@dataclass(slots=True)
class SurvivalAttempt:
    """Train in a process of its own, under the limit of the case; it may die."""

    job: Job
    way: str
    supervised: bool = False
    limited: bool = True

    def warm_up(self) -> None:
        """Every process is a new one."""

    def check(self) -> Proof:
        """Return how many records whole batches without a limit are trained on."""
        return {"records": reference(Path(self.job.folder)).records}

    def prepare(self) -> None:
        """Know the weights of whole batches without a limit."""
        reference(Path(self.job.folder))

    def run(self) -> Outcome:
        """Train, and look at what is left."""
        with tempfile.TemporaryDirectory() as folder:
            out, start = Path(folder) / "learnt.npz", time.perf_counter()
            end = self._trained(out)
            if not out.exists():
                return Outcome({}, ended=cause(end), peak_anonymous_bytes=end.peak_bytes)
            return self._outcome(Learnt.load(out), end, time.perf_counter() - start)

    def _trained(self, out: Path) -> End:
        if self.supervised:
            checkpoint = ["--checkpoint", str(out.with_name("state"))]
            group = ["--memory", str(self._group_bytes)]
            return trained_with([*SUPERVISED, *group, str(SCRIPT), self.way, str(out), *checkpoint])
        command = [*PLAIN, self.way, str(out)]
        if not self.limited:
            return trained_with(command)
        if self.job.case == "group":
            return trained_in_group(command, self._group_bytes)
        return trained_with([*command, "--room", str(ROOM_BYTES)])

    @property
    def _group_bytes(self) -> int:
        return reference(Path(self.job.folder)).base_bytes + ROOM_BYTES

    def _outcome(self, learnt: Learnt, end: End, all_seconds: float) -> Outcome:
        whole = reference(Path(self.job.folder)).weights
        return Outcome(
            {"records": learnt.records},
            # restarts and their imports are part of being supervised
            seconds=all_seconds if self.supervised else learnt.seconds,
            first_batch_seconds=learnt.first_seconds,
            later_rate=learnt.later_rate,
            updates=learnt.updates,
            weights_difference=float(np.linalg.norm(learnt.weights - whole) / np.linalg.norm(whole)),
            ended=FINISHED,
            peak_anonymous_bytes=end.peak_bytes,
        )


def plain(job: Job) -> SurvivalAttempt:
    """`model.fit`."""
    return SurvivalAttempt(job, "plain")


def halved(job: Job) -> SurvivalAttempt:
    """Catch the error, halve the batch, begin again."""
    return SurvivalAttempt(job, "halved")


def accumulated(job: Job) -> SurvivalAttempt:
    """Keras' accumulation in parts that were found by hand."""
    return SurvivalAttempt(job, "accumulated")


def planned(job: Job) -> SurvivalAttempt:
    """`ab.fit`."""
    return SurvivalAttempt(job, "planned")


def whole_first(job: Job) -> SurvivalAttempt:
    """`ab.fit`, told to begin with parts that do not fit."""
    return SurvivalAttempt(job, "whole_first")


def supervised(job: Job) -> SurvivalAttempt:
    """The same under `anybatch run`."""
    return SurvivalAttempt(job, "whole_first", supervised=True)


def unlimited(job: Job) -> SurvivalAttempt:
    """`model.fit` with all memory."""
    return SurvivalAttempt(job, "plain", limited=False)


def reference(folder: Path) -> Learnt:
    """Return what whole batches learn without a limit; made once and kept beside the data."""
    version = hashlib.sha256(SCRIPT.read_bytes()).hexdigest()[:12]
    kept = folder / f"whole-{version}.npz"
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        end = trained_with([*PLAIN, "plain", str(kept)])
        if end.code:
            raise RuntimeError(f"training without a limit ended with exit code {end.code}: {end.said[-300:]}")
    return Learnt.load(kept)
