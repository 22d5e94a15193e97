"""One job in a process of its own: the job comes on stdin, the answer goes to stdout."""

import sys
from typing import Any

from anybatch.cli.bench.job import Answer, Contender, Job
from anybatch.cli.bench.ours import Ours
from anybatch.cli.bench.trials import Reads, tried
from anybatch.errors import NotExamples
from anybatch.records import infer_features


def main() -> None:
    """Answer one job."""
    job = Job.from_json(sys.stdin.read())
    try:
        answer = tried(_contender(job), job)
    except Exception as error:  # noqa: BLE001 (whatever a contender dies of is its result)
        answer = Answer(failure=f"{type(error).__name__}: {error}")
    print(answer.to_json())


def _contender(job: Job) -> Reads:
    features = _features(job)
    if job.contender is Contender.OURS:
        return Ours(job, features)
    from anybatch.stream.interop.tensorflow_reader import TfData

    return TfData(job.files, features, batch_size=job.batch_size, records=job.records)


def _features(job: Job) -> Any:
    try:
        return infer_features(job.files)
    except NotExamples:
        return bytes


if __name__ == "__main__":
    main()
