"""Everybody in turn, each time in a fresh process."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from anybatch.cli.bench.job import Answer, Contender, Job, Trial

Answers = dict[tuple[Contender, Trial], list[Answer]]

_QUIET = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore"}
_READ_BYTES = 1 << 20
_MOST_READ_AHEAD_BYTES = 2 << 30


def played(
    contenders: Sequence[Contender],
    files: Sequence[str],
    *,
    batch_size: int,
    records: int,
    rounds: int,
    tell: Callable[[str], None],
) -> Answers:
    """Return everybody's answers, trial by trial; a contender that fails in one is left out of its rest."""
    answers: Answers = {(contender, trial): [] for contender in contenders for trial in Trial}
    for trial in Trial:
        _read_once(files)
        for number in range(rounds):
            for contender in contenders:
                before = answers[contender, trial]
                if before and before[-1].failure:
                    continue
                tell(f"{trial}, round {number + 1} of {rounds}: {contender}")
                job = Job(contender, trial, tuple(files), batch_size, records, prove=number == 0)
                before.append(answer_to(job))
    return answers


def answer_to(job: Job) -> Answer:
    """Return what a fresh process answers. One that dies has failed."""
    ended = subprocess.run(
        [sys.executable, "-m", "anybatch.cli.bench.child"],
        input=job.to_json(),
        capture_output=True,
        text=True,
        env=os.environ | _QUIET,
        check=False,
    )
    if ended.returncode == 0 and ended.stdout:
        return Answer.from_json(ended.stdout.splitlines()[-1])
    how = f"signal {-ended.returncode}" if ended.returncode < 0 else f"exit code {ended.returncode}"
    last = next(iter(ended.stderr.strip().splitlines()[-1:]), "it said nothing")
    return Answer(failure=f"ended with {how}: {last}")


def _read_once(files: Sequence[str]) -> None:
    """Bring the files into the page cache, as far as one can expect them to stay there."""
    block, done = bytearray(_READ_BYTES), 0
    for path in files:
        with Path(path).open("rb", buffering=0) as file:
            while done < _MOST_READ_AHEAD_BYTES and (more := file.readinto(block)):
                done += more
