import logging
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

import anybatch
from anybatch import records, scale
from anybatch.cli import app
from anybatch.doctor import diagnose
from anybatch.doctor.measure import ShardFacts
from anybatch.errors import CorruptRecord, NotRecords, WillNotOverwrite
from anybatch.handover import alone_in
from anybatch.records import find_files
from anybatch.scale import FileJob, LocalEngine, Task, manifest
from anybatch.scale.manifest import job_key
from anybatch.scale.plain import plain, restored
from anybatch.scale.refusals import JobUnderWay, NoNodeFits, TaskLost
from tests.scale import deadly_engines
from tests.scale.deadly_engines import (
    Counting,
    KillingWorkers,
    LosingANode,
    Stopping,
    deadly_at,
    node_after,
)
from tests.shard_files import flipped, records_in, some_records, starts_of, stream_of, write_shard

RECORDS = some_records(300)
SHARDS = 6


@pytest.fixture(scope="module")
def cluster():
    """A real Ray cluster of two nodes with one processor each."""
    from ray.cluster_utils import Cluster

    logging.getLogger("ray").setLevel(logging.ERROR)
    node = {"num_cpus": 1, "memory": 4 << 30, "object_store_memory": 80 << 20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    cluster.add_node(**node)
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="module")
def ray_engine(cluster):
    with scale.opened_engine("ray", cluster.address) as engine:
        yield engine


@pytest.fixture(params=["local", "ray"])
def engine(request):
    return LocalEngine() if request.param == "local" else request.getfixturevalue("ray_engine")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def sources(tmp_path):
    """Six shards: plain and compressed, two of them damaged."""
    folder = tmp_path / "old"
    folder.mkdir()
    each = len(RECORDS) // SHARDS
    for number in range(SHARDS):
        some = RECORDS[number * each : (number + 1) * each]
        file = write_shard(folder / f"old-{number}.tfrecord", some, "GZIP" if number == 3 else "")
        if number in {1, 4}:
            Path(file).write_bytes(flipped(stream_of(some), starts_of(some)[7] + 13))
    return [str(file) for file in sorted(folder.iterdir())]


def files_in(folder):
    """Name → bytes of every file that `folder/*` matches."""
    return {file.name: file.read_bytes() for file in Path(folder).iterdir() if not file.name.startswith(".")}


def left_over(folder):
    return [file.name for file in Path(folder).iterdir() if file.name.startswith(".anybatch-job")]


def repaired(sources, to, engine=None):
    if engine is None:
        return records.repair(sources, to)
    return scale.repair(sources, str(to), engine=engine)


def resharded(sources, to, engine=None, **options):
    deal = records.reshard if engine is None else partial(scale.reshard, engine=engine)
    return deal(sources, str(to), 7, on_corrupt="skip", **options)


WORKS = {
    "repair": repaired,
    "in order": resharded,
    "shuffled": partial(resharded, shuffle=True, seed=5),
    "shuffled and packed": partial(resharded, shuffle=True, seed=5, compression="GZIP"),
}
works = pytest.mark.parametrize("work", WORKS.values(), ids=WORKS)


@works
def test_a_job_leaves_the_files_of_the_ordinary_command_byte_by_byte(tmp_path, sources, engine, work):
    ordinary = work(sources, tmp_path / "a" / "new")
    made = work(sources, tmp_path / "b" / "new", engine)
    assert files_in(tmp_path / "b" / "new") == files_in(tmp_path / "a" / "new")
    assert left_over(tmp_path / "b" / "new") == []
    assert str(plain(made)).replace("/b/new/", "/a/new/") == str(plain(ordinary))


def test_what_a_job_finds_is_what_the_ordinary_command_finds(sources, engine):
    files = find_files([*sources, __file__, "/nowhere"])
    for _ in range(2):
        assert scale.verify(files, engine=engine) == records.verify(files)
    trusting = scale.verify(files, engine=engine, trust_index=True)
    assert trusting == records.verify(files, trust_index=True)
    assert scale.index_shards(files, engine=engine, force=True) == records.index_shards(files, force=True)


def test_a_diagnosis_by_tasks_is_the_diagnosis(tmp_path, engine):
    rows = [{"x": [number / 7, float("nan")], "label": number // 50} for number in range(200)]
    files = anybatch.write(tmp_path / "train.tfrecord", rows, shards=3)
    each = FileJob(engine, "doctor", ShardFacts).each
    found = diagnose(files, batch_size=16, each=each)
    assert found.document() == diagnose(files, batch_size=16).document()
    assert found.findings


@works
@pytest.mark.parametrize("after", [0, 1, 4])
def test_a_second_start_repeats_nothing_but_what_was_unfinished(tmp_path, sources, work, after):
    check_second_start(tmp_path, sources, LocalEngine(), work, after)


def test_a_second_start_on_a_cluster_repeats_nothing_either(tmp_path, sources, ray_engine):
    check_second_start(tmp_path, sources, ray_engine, WORKS["shuffled"], 9)


def check_second_start(tmp_path, sources, engine, work, after):
    total = Counting(LocalEngine())
    work(sources, tmp_path / "a", total)
    stopped = Stopping(engine, after)
    with pytest.raises(KeyboardInterrupt):
        work(sources, tmp_path / "b", stopped)
    assert files_in(tmp_path / "b") == {} if after else not (tmp_path / "b").exists()
    second = Counting(engine)
    work(sources, tmp_path / "b", second)
    assert second.asked == second.answered == total.asked - after
    assert files_in(tmp_path / "b") == files_in(tmp_path / "a")
    assert left_over(tmp_path / "b") == []


@works
def test_a_finished_job_is_not_done_again(tmp_path, sources, work):
    first = work(sources, tmp_path / "b", LocalEngine())
    again = Counting(LocalEngine())
    assert work(sources, tmp_path / "b", again) == first
    assert again.asked == 0


@works
def test_a_job_over_changed_files_is_another_job(tmp_path, sources, work):
    with pytest.raises(KeyboardInterrupt):
        work(sources, tmp_path / "b", Stopping(LocalEngine(), 2))
    write_shard(sources[0], RECORDS[:3])
    work(sources, tmp_path / "a")
    work(sources, tmp_path / "b", LocalEngine())
    assert files_in(tmp_path / "b") == files_in(tmp_path / "a")


@works
@pytest.mark.parametrize("moved", [0, 1, 5])
def test_a_start_that_ends_while_files_are_moved_is_continued(tmp_path, sources, work, moved, monkeypatch):
    work(sources, tmp_path / "a")
    real, count = Path.replace, iter(range(1000))

    def failing(self, target):
        if Path(target).parent == tmp_path / "b" and next(count) == moved:
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(KeyboardInterrupt):
        work(sources, tmp_path / "b", LocalEngine())
    monkeypatch.setattr(Path, "replace", real)
    again = Counting(LocalEngine())
    work(sources, tmp_path / "b", again)
    assert again.asked == 0
    assert files_in(tmp_path / "b") == files_in(tmp_path / "a")


@works
def test_nothing_is_overwritten(tmp_path, sources, work):
    work(sources, tmp_path / "a")
    name = min(files_in(tmp_path / "a"))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / name).write_text("mine")
    with pytest.raises(WillNotOverwrite):
        work(sources, tmp_path / "b", LocalEngine())
    assert files_in(tmp_path / "b") == {name: b"mine"}


def test_two_at_the_same_job_are_one_too_many(tmp_path, sources):
    folder = tmp_path / "new" / f".anybatch-job-{job_key('repair', {'only_damaged': False}, sources)}"
    folder.mkdir(parents=True)
    with alone_in(folder), pytest.raises(JobUnderWay, match="another process"):
        repaired(sources, tmp_path / "new", LocalEngine())


def test_damage_that_may_not_be_left_out_is_the_same_error(tmp_path, sources, engine):
    with pytest.raises(CorruptRecord) as ordinary:
        records.reshard(sources, tmp_path / "a", 3)
    with pytest.raises(CorruptRecord) as told:
        scale.reshard(sources, str(tmp_path / "b"), 3, engine=engine)
    assert str(told.value) == str(ordinary.value)
    assert not files_in(tmp_path / "b")


def test_an_error_of_the_work_comes_through_as_it_is(tmp_path, engine):
    text = tmp_path / "notes.txt"
    text.write_text("words and words")
    with pytest.raises(NotRecords, match=r"notes\.txt"):
        repaired([str(text)], tmp_path / "new", engine)
    assert not (tmp_path / "new").exists()


def test_values_come_back_out_of_a_journal_as_they_went_in(tmp_path, sources):
    (facts, *_) = diagnose(sources).facts.shards
    made = records.repair(sources, tmp_path / "a")
    dealt = resharded(sources, tmp_path / "b")
    for value in (facts, *made, dealt):
        assert restored(type(value), plain(value)) == value
    assert asdict(dealt)["damaged"]


def test_no_more_tasks_are_under_way_than_there_is_room_for():
    started = []

    def tasks():
        for number in range(50):
            started.append(number)
            yield Task(number, number, "a number", 0, 0)

    with closing(LocalEngine(threads=2).run(abs, tasks())) as running:
        for count, _ in enumerate(running):
            assert len(started) <= count + 4
    assert len(started) == 50


def test_killed_workers_cost_nothing_but_their_task(tmp_path, sources, ray_engine):
    resharded(sources, tmp_path / "a", shuffle=True)
    (tmp_path / "marks").mkdir()
    deadly = KillingWorkers(ray_engine, tmp_path / "marks")
    resharded(sources, tmp_path / "b", deadly, shuffle=True)
    assert deadly.killed >= 2
    assert files_in(tmp_path / "b") == files_in(tmp_path / "a")


def test_a_node_that_is_killed_under_a_job_costs_nothing(tmp_path, sources, cluster, ray_engine):
    resharded(sources, tmp_path / "a")
    node = cluster.add_node(num_cpus=2, memory=4 << 30, object_store_memory=80 << 20)
    losing = LosingANode(ray_engine, partial(cluster.remove_node, node, allow_graceful=False))
    resharded(sources, tmp_path / "b", losing)
    assert node not in cluster.worker_nodes
    assert files_in(tmp_path / "b") == files_in(tmp_path / "a")


def test_killed_workers_repeat_the_tasks_they_died_over_and_no_others(tmp_path, ray_engine):
    """A hundred tasks go in bundles, and workers die in the middle of these."""
    moments = {9, 10, 22, 99}
    tasks = [Task(number, number, f"task {number}", 0, 0) for number in range(100)]
    done = list(ray_engine.run(partial(deadly_at, moments, tmp_path), tasks))
    assert sorted(value for _, value in done) == list(range(100))
    assert all(task.number == value for task, value in done)
    assert len(list(tmp_path.iterdir())) == 100 + len(moments)


def test_a_killed_driver_is_continued_with_what_was_not_finished(tmp_path, cluster, ray_engine):
    """A hundred shards go in bundles of up to 16: what is finished of them is not done again."""
    folders = [tmp_path / name for name in ("old", "marks")]
    for folder in folders:
        folder.mkdir()
    old, marks = folders
    many = [write_shard(old / f"{number:03d}", RECORDS[number : number + 3]) for number in range(100)]
    repaired(many, tmp_path / "a")
    child = [sys.executable, deadly_engines.__file__, cluster.address, marks, tmp_path / "b", "40", *many]
    assert subprocess.run(child, check=False, cwd=Path.cwd()).returncode == -signal.SIGKILL
    killed = (marks / "killed").stat().st_mtime_ns
    # the kernel's clock of files is coarse, and "killed" is no task
    finished = sum(mark.stat().st_mtime_ns <= killed for mark in marks.iterdir()) - 1
    second = Counting(ray_engine)
    repaired(many, tmp_path / "b", second)
    assert second.asked == 100 - 40
    # one value was lost on its way to the journal; the two workers are a task or two further
    assert 40 < finished <= 40 + 5
    assert files_in(tmp_path / "b") == files_in(tmp_path / "a")


@pytest.mark.parametrize("ballast", [b"", bytes(1 << 20)], ids=["sent along", "kept in a store"])
def test_every_node_has_its_share_of_every_phase(ray_engine, ballast):
    """One phase behind the other, when Ray may still take a node for busy with the last."""
    tasks = [Task(number, 0.01, "a nap", 0, 256 << 20) for number in range(24)]

    def nodes():
        return {node for _, node in ray_engine.run(partial(node_after, ballast=ballast), tasks)}

    # a worker that is still being started has no share
    assert any(len(nodes()) == 2 for _ in range(100))
    assert [len(nodes()) for _ in range(10)] == [2] * 10


@pytest.mark.soak
def test_a_task_that_kills_every_worker_is_named(ray_engine):
    """The others of its bundle are not to blame, and those before it are done."""
    signals = [signal.SIGCONT] * 3 + [signal.SIGKILL] + [signal.SIGCONT] * 36
    tasks = [Task(number, one, f"task {number}", 0, 0) for number, one in enumerate(signals)]
    done = []
    with pytest.raises(TaskLost, match="4 workers died while they worked on task 3: "):
        done.extend(task.number for task, _ in ray_engine.run(signal.raise_signal, tasks))
    assert {0, 1, 2} <= set(done)


def test_a_task_that_no_node_can_hold_is_refused_and_not_waited_for(ray_engine):
    with pytest.raises(NoNodeFits, match=r"`a` needs up to 1 TiB and the largest node offers 4 GiB"):
        list(ray_engine.run(abs, [Task(0, 1, "`a`", 0, 1 << 40)]))


def test_the_commands_work_on_a_cluster(tmp_path, sources, cluster, ray_engine):
    there = ["--engine", "ray", "--address", cluster.address]
    to = ["--to", tmp_path / "b", "--shards", "3", "--on-corrupt", "skip"]
    for arguments in (
        ["verify"],
        ["index"],
        ["doctor"],
        ["repair", "--to", tmp_path / "a"],
        ["reshard", *to],
    ):
        result = CliRunner().invoke(app, [*map(str, arguments), *sources, *there, "--json"])
        assert result.exit_code in {0, 1}, result.output
    assert len(records_in(*(tmp_path / "b").glob("*.tfrecord"))) == len(RECORDS) - 2


def test_without_ray_one_line_says_what_to_install(tmp_path, sources, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    result = CliRunner().invoke(app, ["verify", *sources, "--engine", "ray"])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "pip install anybatch[ray]" in line


def test_an_address_goes_with_ray_alone(sources):
    for arguments in (["--address", "host:1"], ["--engine", "local", "--address", "host:1"]):
        result = CliRunner().invoke(app, ["verify", *sources, *arguments])
        assert result.exit_code == 2
        assert "names a Ray cluster" in result.stderr


def test_an_address_at_which_nobody_listens_is_refused_at_once(sources):
    done = subprocess.run(
        [sys.executable, "-m", "anybatch", "verify", *sources, "--engine", "ray", "--address", "127.0.0.1:1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert "no Ray cluster answers at `127.0.0.1:1`" in done.stderr


def test_the_lock_of_a_finished_job_is_let_go_before_its_folder_is(tmp_path, monkeypatch):
    """A network file system keeps what is open, under another name, and then the folder cannot go."""
    removed = []

    def noted(folder, **_):
        with alone_in(folder):
            removed.append(folder)

    monkeypatch.setattr(manifest.shutil, "rmtree", noted)
    with manifest.continued(tmp_path / "job"):
        pass
    assert removed == [tmp_path / "job"]
