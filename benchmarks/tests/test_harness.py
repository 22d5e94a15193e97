"""The harness itself: what it writes, what it compares, what it concludes."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import make, picture
from benchmarks.child import answer_of, with_peak
from benchmarks.datasets import DATASETS, Written, ensure
from benchmarks.digest import Columns, Digest, Lists
from benchmarks.job import Answer, Job
from benchmarks.proc import Family, StatusFile
from benchmarks.registry import THEMES, Case, load_theme
from benchmarks.roster import CONTENDERS
from benchmarks.rounds import Standing, difference, unproven
from benchmarks.summary import exit_code, summarise
from benchmarks.wire import examples

ROWS = 300


def columns_of(name: str, rows: int = ROWS) -> Columns:
    return DATASETS[name].columns(np.random.default_rng(3), rows)


def some_rows(columns: Columns, rows: list[int]) -> Columns:
    return {name: picked(column, rows) for name, column in columns.items()}


def picked(column: "np.ndarray | Lists", rows: list[int]) -> "np.ndarray | Lists":
    if not isinstance(column, Lists):
        return column[rows]
    lists = [column.values[column.offsets[row] : column.offsets[row + 1]] for row in rows]
    lengths = np.array([len(values) for values in lists], np.int64)
    return Lists.of_lengths(np.concatenate(lists), lengths)


def digest_of(*batches: Columns) -> dict[str, str | int]:
    digest = Digest()
    for batch in batches:
        digest.add(batch)
    return digest.as_json()


@pytest.mark.parametrize("name", ["floats", "bytes784", "ragged", "integers"])
def test_messages_are_those_that_tensorflow_writes(name: str) -> None:
    tf = pytest.importorskip("tensorflow")
    for message in examples(columns_of(name)):
        assert tf.train.Example.FromString(message).SerializeToString(deterministic=True) == message


def test_numbers_below_zero_are_written_as_such() -> None:
    tf = pytest.importorskip("tensorflow")
    numbers = np.array([0, 1, -1, 127, 128, -1_000, 2**56, 2**63 - 1, -(2**63)], np.int64)
    message = next(examples({"numbers": numbers[None]}))
    read = tf.train.Example.FromString(message).features.feature["numbers"].int64_list.value
    assert list(read) == numbers.tolist()


@pytest.mark.parametrize("name", ["floats", "bytes784", "ragged"])
def test_a_digest_does_not_depend_on_how_rows_are_batched(name: str) -> None:
    columns = columns_of(name)
    parts = [some_rows(columns, list(range(start, min(start + 37, ROWS)))) for start in range(0, ROWS, 37)]
    assert digest_of(*parts) == digest_of(columns)


@pytest.mark.parametrize("name", ["floats", "bytes784", "ragged"])
def test_only_one_of_the_digests_knows_the_order(name: str) -> None:
    columns = columns_of(name)
    there, back = digest_of(columns), digest_of(some_rows(columns, list(range(ROWS))[::-1]))
    assert there["any_order"] == back["any_order"]
    assert there["ordered"] != back["ordered"]


def test_one_other_bit_changes_the_digest() -> None:
    image = np.zeros((ROWS, 28, 28, 1), np.uint8)
    before = digest_of({"image": image})
    image[17, 3, 5, 0] ^= 1
    assert digest_of({"image": image})["any_order"] != before["any_order"]


def test_a_value_that_moves_to_the_next_list_changes_the_digest() -> None:
    values = np.array([5, 6, 7], np.int64)
    one, other = Lists(values, np.array([0, 2, 3])), Lists(values, np.array([0, 1, 3]))
    assert digest_of({"tokens": one})["any_order"] != digest_of({"tokens": other})["any_order"]


def test_a_data_set_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorflow")
    tiny = replace(DATASETS["ragged"], quick_records=100, shards=3)
    with monkeypatch.context() as patch:
        patch.setattr(make, "check_first", interrupt)
        with pytest.raises(KeyboardInterrupt):
            make.make(tiny, tmp_path, quick=True)
    assert list(tmp_path.iterdir()) == []
    make.make(tiny, tmp_path, quick=True)
    written = ensure(tiny, tmp_path, quick=True)
    assert isinstance(written, Written)
    assert written.truth["records"] == 100
    assert len(written.shards) == 3


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_contender_that_cannot_be_imported_says_why() -> None:
    answer = answer_of(Job("benchmarks.contenders.nobody:build", "floats", (), 1, "check"))
    assert answer.failure == "ModuleNotFoundError: No module named 'benchmarks.contenders.nobody'"


def test_jobs_and_answers_survive_json() -> None:
    job = Job("a:b", "floats", ("x", "y"), 512, "time", cold=True)
    assert Job.from_json(job.to_json()) == job
    answer = Answer(proof={"records": 3}, seconds=1.5)
    assert Answer.from_json(answer.to_json()) == answer
    assert json.loads(answer.to_json())["seconds"] == 1.5


def test_the_peak_is_the_largest_sample_after_the_imports() -> None:
    answer = Answer(imported_at=2.0, finished_at=4.0, after_import_anonymous_bytes=100)
    peak = with_peak(answer, [(1.0, 900), (2.5, 150), (3.0, 170), (5.0, 800)])
    assert (peak.peak_anonymous_bytes, peak.growth_bytes) == (170, 70)


def test_worker_processes_count_as_well() -> None:
    holding = "import sys; kept = bytearray(b'x') * (64 << 20); print('held', flush=True); sys.stdin.read()"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {holding!r}])"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", parent], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        family = Family(process.pid)
        together, alone = family.anonymous_bytes(), StatusFile(process.pid).anonymous_bytes()
        family.close()
        process.communicate("")
    assert together is not None
    assert alone is not None
    assert together - alone > 64 << 20


def test_who_has_had_enough_is_left_alone_but_never_without_a_round() -> None:
    slow = Standing(CONTENDERS["tf.data usual"], process_seconds=9.0)
    assert not slow.has_enough(5.0)
    slow.timed.append(Answer(seconds=1.0))
    assert slow.has_enough(5.0)
    assert not slow.has_enough(10.0)
    slow.timed.append(Answer(seconds=50.0))
    assert slow.has_enough(math.inf)


def test_order_counts_only_for_those_who_promise_it() -> None:
    truth = {"records": 2, "ordered": "a", "any_order": "b"}
    proof = truth | {"ordered": "c"}
    assert difference(CONTENDERS["tf.data best"], proof, truth) == ""
    assert difference(CONTENDERS["anybatch"], proof, truth) == "ordered is c, written was a"
    assert unproven(CONTENDERS["anybatch"], {"records": 2}) == "nothing shows its ordered"


def case_of(*names: str) -> Case:
    return Case("c", "c", "floats", "records", tuple(CONTENDERS[name] for name in names))


def test_medians_are_compared_with_ours() -> None:
    case = case_of("tf.data usual", "anybatch")
    slow = Standing(case.contenders[0], timed=[Answer(seconds=seconds) for seconds in (8.0, 9.0, 90.0)])
    ours = Standing(case.contenders[1], timed=[Answer(seconds=seconds) for seconds in (2.0, 3.0, 4.0)])
    theirs, mine = summarise(case, [slow, ours], amount=18)
    assert (theirs.value, theirs.lowest, theirs.highest, mine.value) == (2.0, 0.2, 2.25, 6.0)
    assert theirs.anybatch_is == pytest.approx(3)


@pytest.mark.parametrize(
    ("name", "failure", "wrong", "code"),
    [
        ("tf.data usual", "ModuleNotFoundError", "", 0),
        ("anybatch", "ModuleNotFoundError", "", 1),
        ("anybatch", "OSError: not possible here: no memory group: read-only", "", 0),
        ("tf.data usual", "", "records is 1, written was 2", 1),
        ("anybatch", "", "", 0),
    ],
)
def test_the_exit_code_is_1_when_ours_fails_or_values_differ(
    name: str, failure: str, wrong: str, code: int
) -> None:
    case = case_of(name)
    standing = Standing(case.contenders[0], failure=failure, difference=wrong, timed=[Answer(seconds=1.0)])
    assert exit_code(summarise(case, [standing], amount=1)) == code


@pytest.mark.parametrize(
    ("name", "off_by", "code"), [("anybatch", 1e-2, 1), ("anybatch", 2e-7, 0), ("tf.data usual", 1e-2, 0)]
)
def test_the_exit_code_is_1_when_our_weights_are_others_than_those_of_whole_batches(
    name: str, off_by: float, code: int
) -> None:
    case = case_of(name)
    standing = Standing(case.contenders[0], timed=[Answer(seconds=1.0, weights_difference=off_by)])
    assert exit_code(summarise(case, [standing], amount=1)) == code


@pytest.mark.parametrize("name", THEMES)
def test_a_theme_has_the_name_of_its_file_and_known_data_sets(name: str) -> None:
    theme = load_theme(name)
    assert theme.name == name
    assert {case.dataset for case in theme.cases if case.dataset} <= set(DATASETS)
    assert all(case.dataset or case.promised for case in theme.cases)
    assert all(case.contenders for case in theme.cases)


def test_no_theme_writes_over_what_the_picture_keeps() -> None:
    assert picture.RESULTS.stem not in THEMES


@pytest.mark.parametrize("name", THEMES)
def test_limits_stand_below_contenders(name: str) -> None:
    for case in load_theme(name).cases:
        limits = [one.role == "limit" for one in case.contenders]
        assert limits == sorted(limits)
        assert limits[-1], f"the last row of {case.name} should say what nobody can beat"


@pytest.mark.parametrize("name", THEMES)
def test_ours_takes_part_in_every_case_of_a_quick_run(name: str) -> None:
    cases = load_theme(name).sized(quick=True)
    assert all("ours" in {one.role for one in case.contenders} for case in cases)


def test_a_quick_run_stays_below_ten_minutes_by_starting_few_processes() -> None:
    # 34 of 79 import TensorFlow, five seconds each; only what takes less than that has a second round
    cases = [case for name in THEMES for case in load_theme(name).sized(quick=True)]
    assert sum(len(case.contenders) * (1 + (case.check == "before")) for case in cases) <= 85


def test_who_is_slow_at_a_case_takes_part_at_full_size_only() -> None:
    case = case_of("Grain ArrayRecord", "anybatch").slow("Grain ArrayRecord")
    assert [one.name for one in case.contenders] == ["Grain ArrayRecord", "anybatch"]
    assert [one.name for one in case.for_quick().contenders] == ["anybatch"]
    assert [one.fewer for one in case.contenders] == [True, False]


def test_who_gets_fewer_records_is_measured_by_those() -> None:
    case = case_of("Grain ArrayRecord", "anybatch").slow("Grain ArrayRecord")
    fewer = Written(Path("few"), (), {"records": 6}, 100)
    slow = Standing(case.contenders[0], fewer, timed=[Answer(seconds=3.0)])
    ours = Standing(case.contenders[1], timed=[Answer(seconds=3.0)])
    theirs, mine = summarise(case, [slow, ours], amount=18)
    assert (theirs.value, mine.value, theirs.anybatch_is) == (2.0, 6.0, 3.0)
    assert theirs.note.endswith("; on 6 records")
    assert not mine.note
