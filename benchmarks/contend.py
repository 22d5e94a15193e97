"""The child: do one job from standard input in this fresh process, answer on standard output.

echo '{"build": "benchmarks.contenders.bare:one_thread", …}' | python -m benchmarks.contend
"""

import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import cast

from benchmarks.attempt import Attempt, BatchAttempt
from benchmarks.first_batch import FirstBatchAttempt
from benchmarks.job import NOT_HERE, Answer, Job
from benchmarks.proc import StatusFile, page_faults_so_far, read_bytes_so_far


def main() -> None:
    """Answer one job. A contender that raises is an answer too."""
    # whatever libraries print must not end up in the answer
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        answer = contend(Job.from_json(sys.stdin.read()))
    except Exception as error:  # noqa: BLE001 - whatever a contender raises belongs in the table
        traceback.print_exc()
        answer = Answer(failure=f"{type(error).__name__}: {error}")
    answers.write(answer.to_json())
    answers.close()


def contend(job: Job) -> Answer:
    """Import the contender, then check or time it."""
    keep_to(job.cores)
    enter(job.group)
    build = load(job.build)
    status = StatusFile()
    imported = Answer(imported_at=time.monotonic(), after_import_anonymous_bytes=status.anonymous_bytes())
    attempt = wanted_of(build(job), job)
    if job.purpose == "check":
        answer = replace(imported, proof=attempt.check())
    else:
        answer = timed(attempt, imported, forget=job.shards if job.cold else ())
    answer = replace(answer, peak_resident_bytes=status.peak_resident_bytes(), finished_at=time.monotonic())
    if job.purpose != "time, then check":
        return answer
    # neither timed nor part of the peak; what the timed run counted has to be right as well
    return replace(answer, proof=attempt.check() | answer.proof)


def load(name: str) -> Callable[[Job], Attempt]:
    """Return the function that `module:function` names."""
    module, function = name.split(":")
    return cast("Callable[[Job], Attempt]", getattr(import_module(module), function))


def keep_to(count: int) -> None:
    """Let this process use that many cores only; all if 0."""
    if not count:
        return
    free = sorted(os.sched_getaffinity(0))
    if len(free) < count:
        raise OSError(f"{NOT_HERE}: there are {len(free)} cores, {count} are needed")
    os.sched_setaffinity(0, free[:count])


def enter(group: str) -> None:
    """Let this process and what it reads count in a memory group, if one is named."""
    if group:
        Path(group).write_text(str(os.getpid()))


def wanted_of(attempt: Attempt, job: Job) -> Attempt:
    """Return the attempt at as much of the work as the job wants."""
    return (
        FirstBatchAttempt(job, attempt)
        if job.work != "all" and isinstance(attempt, BatchAttempt)
        else attempt
    )


def evict(paths: Sequence[str]) -> None:
    """Drop files from the page cache."""
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def timed(attempt: Attempt, imported: Answer, forget: Sequence[str] = ()) -> Answer:
    """Return the measurements of one run over everything, cold for the files to forget."""
    attempt.warm_up()
    attempt.prepare()
    evict(forget)
    read_before, faults_before = read_bytes_so_far(), page_faults_so_far()
    start, cpu_start = time.perf_counter(), time.process_time()
    outcome = attempt.run()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    read_after = read_bytes_so_far()
    return replace(
        imported,
        proof=outcome.proof,
        seconds=seconds if outcome.seconds is None else outcome.seconds,
        cpu_seconds=cpu_seconds,
        first_batch_seconds=outcome.first_batch_seconds,
        later_rate=outcome.later_rate,
        read_bytes=None if read_before is None or read_after is None else read_after - read_before,
        page_faults=page_faults_so_far() - faults_before,
        state_bytes=outcome.state_bytes,
        weights_difference=outcome.weights_difference,
        updates=outcome.updates,
        ended=outcome.ended,
        peak_anonymous_bytes=outcome.peak_anonymous_bytes,
    )


if __name__ == "__main__":
    main()
