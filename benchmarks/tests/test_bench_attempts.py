"""The parts that do the work: conversions, environments, first batches, resuming, limits."""

import io
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import make
from benchmarks.attempt import BatchAttempt
from benchmarks.child import answer_of
from benchmarks.contend import keep_to
from benchmarks.contenders.under_limit import End, cause
from benchmarks.convert import convert
from benchmarks.datasets import DATASETS, Dataset, Written
from benchmarks.digest import Columns, Digest
from benchmarks.forms import shards_in
from benchmarks.job import Job
from benchmarks.registry import Case
from benchmarks.resume import ResumeAttempt, Saved
from benchmarks.roster import contenders
from benchmarks.rounds import run_case

TINY = replace(DATASETS["bytes784"], quick_records=100, shards=3)


@pytest.fixture
def written(tmp_path: Path) -> Written:
    pytest.importorskip("tensorflow")
    make.make(TINY, tmp_path, quick=True)
    (folder,) = tmp_path.iterdir()
    return Written.load(folder)


def rows_in(archive: Path, dataset: Dataset) -> Columns:
    with tarfile.open(archive) as files:
        contents = {name: files.extractfile(name).read() for name in files.getnames()}  # type: ignore[union-attr]
    keys = sorted({name.partition(".")[0] for name in contents})
    return {
        "image": np.stack([np.load(io.BytesIO(contents[f"{key}.image.npy"])) for key in keys]),
        "label": np.array([int(contents[f"{key}.label.cls"]) for key in keys], np.int64),
    }


def test_archives_hold_the_records_of_the_shards(written: Written) -> None:
    convert("tar", TINY, written)
    digest = Digest()
    for archive in shards_in("tar", "bytes784", written, python=""):
        digest.add(rows_in(Path(archive), TINY))
    assert digest.as_json() == written.truth


def test_who_has_no_environment_is_left_out_with_the_reason_and_asked_once(
    written: Written, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()  # where no environment can be made
    elsewhere = replace(written, folder=tmp_path / "file" / "bytes784")
    case = Case("c", "c", "bytes784", "records", contenders("Grain", "Grain ArrayRecord"))
    standings = run_case(case, elsewhere, rounds=1)
    assert all("its environment could not be made" in standing.failure for standing in standings)
    assert capfd.readouterr().err.count("installing grain") == 1


def job(written: Written, build: str, **more: object) -> Job:
    plain = Job(f"benchmarks.contenders.{build}", "bytes784", written.shards, 16, "time", records=100)
    return replace(plain, **more)  # type: ignore[arg-type]


def test_the_first_batch_counts_from_the_start_of_the_process_if_asked(written: Written) -> None:
    warm = answer_of(job(written, "ours:shuffled", work="first_batch"))
    cold = answer_of(job(written, "ours:shuffled", work="first_batch_of_process"))
    assert warm.first_batch_seconds is not None
    assert cold.first_batch_seconds is not None
    assert warm.first_batch_seconds < cold.first_batch_seconds


def test_going_on_gives_what_is_left_and_nothing_twice(written: Written) -> None:
    answer = answer_of(job(written, "resume_ours:shuffled", purpose="check"))
    assert answer.proof["any_order"] == written.truth["any_order"]
    assert answer.proof["records"] == 100


@pytest.mark.parametrize("limit", ["one_thread", "all_cores", "by_batches", "one_batch", "opened"])
def test_a_bare_limit_has_seen_every_byte(written: Written, limit: str) -> None:
    answer = answer_of(job(written, f"bare:{limit}", purpose="check"))
    assert (answer.failure, answer.proof) == ("", {"file_bytes": written.file_bytes})


def test_a_bare_limit_waits_for_the_bytes_of_one_batch(written: Written) -> None:
    warm = answer_of(job(written, "bare:one_batch", work="first_batch")).first_batch_seconds
    cold = answer_of(job(written, "bare:one_batch", work="first_batch_of_process")).first_batch_seconds
    assert warm is not None
    assert cold is not None
    assert 0 < warm < cold


def batches_of(_: Sequence[str]) -> Iterator[Columns]:
    return iter([{"label": np.arange(start, start + 5)} for start in range(0, 50, 5)])


@pytest.mark.parametrize("off_by", [-1, 1])
def test_going_on_a_batch_too_early_or_too_late_is_noticed(off_by: int) -> None:
    def going_on(batches: Iterator[Columns], taken: int) -> Iterator[Columns]:
        return iter(list(batches)[taken:])

    def proof(shift: int) -> object:
        attempt = BatchAttempt((), batches_of, lambda batch: len(batch["label"]), lambda batch: batch)
        return ResumeAttempt(attempt, 4, lambda _, taken: Saved(taken + shift, 8), going_on).check()

    digest = Digest()
    for batch in batches_of(()):
        digest.add(batch)
    assert proof(0) == digest.as_json()
    assert proof(off_by) != digest.as_json()


def test_more_cores_than_there_are_is_an_error_with_both_numbers() -> None:
    with pytest.raises(OSError, match=r"not possible here: there are \d+ cores, 5000 are needed"):
        keep_to(5_000)


def test_one_core_means_one_core() -> None:
    told = "from benchmarks import contend, machine; contend.keep_to(1); print(machine.cores())"
    assert subprocess.run([sys.executable, "-c", told], capture_output=True, check=True).stdout == b"1\n"


@pytest.mark.parametrize(
    ("code", "said", "words"),
    [
        (-9, "", "killed by the kernel"),
        (137, "", "killed by the kernel"),
        (-6, "terminate called after throwing an instance of 'std::bad_alloc'", "signal 6"),
        (1, "tensorflow...ResourceExhaustedError: OOM when allocating", "ResourceExhaustedError"),
        (1, "ValueError: something else", "exit code 1"),
    ],
)
def test_an_end_has_a_name(code: int, said: str, words: str) -> None:
    assert cause(End(code, said, peak_bytes=0)) == words
