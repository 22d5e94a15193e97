"""Run one job in a fresh process and watch its memory from outside."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.job import Answer, Job
from benchmarks.proc import Family

ROOT = Path(__file__).resolve().parent.parent
SAMPLE_SECONDS = 0.004
LIMIT_SECONDS = 3600.0
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1"}
Samples = list[tuple[float, int]]


def answer_of(job: Job, python: str = sys.executable) -> Answer:
    """Return the child's answer, its peak memory filled in. A child that dies is a failure."""
    with tempfile.TemporaryFile("w+") as questions, tempfile.TemporaryFile("w+") as said:
        questions.write(replace(job, asked_at=time.monotonic()).to_json())
        questions.seek(0)
        with subprocess.Popen(
            [python, "-m", "benchmarks.contend"],
            stdin=questions,
            stdout=subprocess.PIPE,
            stderr=said,
            cwd=ROOT,
            env=os.environ | QUIET,
            text=True,
        ) as child:
            samples = _samples(child)
            answer = child.stdout.read() if child.stdout else ""
        said.seek(0)
        return with_peak(_understood(answer, child.returncode, said.read()), samples)


def with_peak(answer: Answer, samples: Samples) -> Answer:
    """Return the answer with the largest sample between its imports and its end, unless it has one."""
    if answer.peak_anonymous_bytes is not None:
        return answer
    seen = [held for when, held in samples if answer.imported_at <= when <= answer.finished_at]
    return replace(answer, peak_anonymous_bytes=max(seen, default=None))


def _samples(child: "subprocess.Popen[str]") -> Samples:
    # from outside, since a thread inside would wait for the interpreter lock just when it matters
    family, samples = Family(child.pid), []
    deadline = time.monotonic() + LIMIT_SECONDS
    try:
        while child.poll() is None:
            held = family.anonymous_bytes()
            if held is not None:
                samples.append((time.monotonic(), held))
            if time.monotonic() > deadline:
                # a signal of its own, so that it does not look like the kernel's when memory is out
                child.send_signal(signal.SIGALRM)
            time.sleep(SAMPLE_SECONDS)
    except BaseException:
        child.kill()
        raise
    finally:
        family.close()
    return samples


def _understood(answer: str, exit_code: int, said: str) -> Answer:
    if exit_code == 0 and answer:
        return Answer.from_json(answer)
    how = f"died of signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}, no answer"
    last = next(iter(said.strip().splitlines()[-1:]), "it said nothing")
    return Answer(failure=f"{how}: {last}")
