"""Run a case: everybody is checked once, then timed in turns, each time in a fresh process."""

import math
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from anybatch.supervise.own_group import own_group
from benchmarks.child import answer_of
from benchmarks.datasets import Written
from benchmarks.environment import NotMade, interpreter
from benchmarks.forms import shards_in
from benchmarks.job import NOT_HERE, Answer, Job, Purpose
from benchmarks.registry import Case, Contender

BLOCK_BYTES = 1 << 20
LONGEST_REASON = 300
# Whoever has been timed for so long is known well enough: its rounds would hold up everybody else's.
ENOUGH_SECONDS = 40.0
# In quick runs its processes count whole: importing TensorFlow takes five seconds, whatever is timed then.
ENOUGH_PROCESS_SECONDS_QUICK = 5.0


@dataclass(slots=True)
class Standing:
    """What is known about one contender so far."""

    contender: Contender
    fewer: Written | None = None  # the records it is timed with, where it gets fewer than all
    failure: str = ""  # it could not do it
    difference: str = ""  # it did something else
    checked: Answer = field(default_factory=Answer)
    timed: list[Answer] = field(default_factory=list)
    process_seconds: float = 0.0  # imports, warm-up and checks included

    @property
    def failed(self) -> bool:
        """Return whether it could not do it, or did something else."""
        return bool(self.failure or self.difference)

    @property
    def timed_seconds(self) -> float:
        """Return how long it has been timed."""
        return sum(answer.seconds for answer in self.timed)

    def has_enough(self, process_seconds: float) -> bool:
        """Return whether another round would hold up everybody else's; the first one is never left out."""
        known = self.timed_seconds > ENOUGH_SECONDS or self.process_seconds > process_seconds
        return bool(self.timed) and known


def run_case(
    case: Case,
    written: Written,
    *,
    rounds: int,
    fewer: Written | None = None,
    enough_process_seconds: float = math.inf,
) -> list[Standing]:
    """Return every contender's standing after a check and `rounds` timed rounds, interleaved.

    `fewer`: records for those that take minutes for all.
    """
    standings = [Standing(contender, fewer if contender.fewer else None) for contender in case.contenders]
    for standing in standings if case.check == "before" else []:
        standing.checked = _answer(case, written, standing, "check")
    for number in range(1, min(rounds, case.rounds) + 1):
        purpose: Purpose = "time, then check" if number == 1 and case.check == "after" else "time"
        for standing in standings:
            if standing.failed or standing.has_enough(enough_process_seconds):
                continue
            standing.timed.append(_answer(case, written, standing, purpose))
            if not standing.failed:
                seconds = standing.timed[-1].seconds
                _say(f"  round {number}/{rounds}  {standing.contender.name}: {seconds:.2f} s")
    return standings


def difference(contender: Contender, proof: Mapping[str, Any], truth: Mapping[str, Any]) -> str:
    """Return in what the proof differs from what was written, or nothing."""
    promised = {key for key in proof if key != "ordered" or contender.proves == "ordered"}
    wrong = sorted(key for key in promised if proof[key] != truth[key])
    return "; ".join(f"{key} is {proof[key]}, written was {truth[key]}" for key in wrong)


def unproven(contender: Contender, proof: Mapping[str, Any]) -> str:
    """Return what the contender owes and did not show, or nothing."""
    return "" if contender.proves in proof else f"nothing shows its {contender.proves}"


def _answer(case: Case, written: Written, standing: Standing, purpose: Purpose) -> Answer:
    contender, written = standing.contender, standing.fewer or written
    try:
        python = interpreter(contender.environment, written.folder.parent)
        shards = shards_in(contender.form, case.dataset, written, python)
    except NotMade as problem:
        answer = Answer(failure=str(problem))
    else:
        start = time.monotonic()
        answer = _asked(_job(case, written, contender, purpose, shards), case, written, python)
        standing.process_seconds += time.monotonic() - start
    standing.failure = answer.failure.partition("\n")[0][:LONGEST_REASON]
    if not answer.failure:
        truth = {**written.truth, "file_bytes": written.file_bytes}
        must = purpose != "time" or (case.check == "always" and answer.survived)
        owed = unproven(contender, answer.proof) if must else ""
        standing.difference = difference(contender, answer.proof, truth) or owed
    if standing.failed:
        _say(f"  {contender.name} is out: {standing.failure or standing.difference}")
    elif purpose != "time":
        _say(f"  {contender.name}: {contender.proves} as written")
    return answer


def _job(
    case: Case, written: Written, contender: Contender, purpose: Purpose, shards: tuple[str, ...]
) -> Job:
    return Job(
        f"benchmarks.contenders.{contender.build}",
        case.dataset,
        shards,
        case.batch,
        purpose,
        case=case.name,
        records=int(written.truth.get("records", 0)),
        folder=str(written.folder),
        cold=case.cache != "warm" and purpose != "check",
        work=case.work,
        cores=case.cores,
    )


def _asked(job: Job, case: Case, written: Written, python: str) -> Answer:
    if case.cache == "third" and job.purpose != "check":
        return _answer_in_group(job, python, written.file_bytes // 3)
    read_once(job.shards)
    return answer_of(job, python)


def _answer_in_group(job: Job, python: str, limit_bytes: int) -> Answer:
    group = own_group(limit_bytes)
    if isinstance(group, str):
        return Answer(failure=f"{NOT_HERE}: no memory group: {group}")
    try:
        return answer_of(replace(job, group=str(group.entrance)), python)
    finally:
        group.remove()


def read_once(shards: tuple[str, ...]) -> None:
    """Bring the files into the page cache, where they are read from in every round."""
    block = bytearray(BLOCK_BYTES)
    for shard in shards:
        with Path(shard).open("rb", buffering=0) as file:
            while file.readinto(block):
                pass


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
