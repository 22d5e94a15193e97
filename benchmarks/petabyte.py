"""What follows for 1,000 hosts and a petabyte: measured where that is possible, else simulated.

python -m benchmarks.petabyte
"""

import heapq
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import anybatch as ab
from anybatch._native import Order
from anybatch.handover import Journal
from anybatch.records import ShardReport, int64s
from anybatch.scale import Task
from anybatch.scale.jobs import JobRun
from anybatch.scale.manifest import SeldomSyncing
from anybatch.units import size

HOSTS, CORES = 1_000, 16
PETABYTE = 10**15
RECORDS = 10**12
HOURS_BETWEEN_FAILURES = 100.0
"""Of one host: bad weather, so that something happens."""
GIGABYTES_PER_SECOND_AND_CORE = 0.125
"""2 GB/s per host: what the storage gives, not what the cores could do."""
LAUNCH_SECONDS = 0.001
"""What one driver needs per task; `benchmarks.engines` prints what it is here."""
RETURN_SECONDS = 120.0
NETWORK_BYTES_PER_SECOND = 12.5e9
RESTART_SECONDS = 20.0
"""From the death of a worker to the next update, of a small model on busy cores: docs/scale-training.md."""


@dataclass(frozen=True, slots=True)
class Course:
    """How a simulated job went."""

    seconds: float
    ideal_seconds: float
    failures: int
    repeated: int


def simulated(shards: int, *, seed: int = 0) -> Course:
    """Return the course of a job: a task per shard, hosts that fail and come back, one driver.

    A task whose host fails is started again elsewhere, as Ray does; nothing that is finished is repeated.
    """
    rng = random.Random(seed)
    task_seconds = PETABYTE / shards / (GIGABYTES_PER_SECOND_AND_CORE * 1e9)
    free = [(0.0, host) for host in range(HOSTS) for _ in range(CORES)]
    mean = HOURS_BETWEEN_FAILURES * 3600
    fails_at = [rng.expovariate(1 / mean) for _ in range(HOSTS)]
    left, driver, end, repeated, failures = shards, 0.0, 0.0, 0, set()
    while left:
        at, host = heapq.heappop(free)
        driver = max(driver + LAUNCH_SECONDS, at)
        finish = driver + task_seconds * rng.uniform(0.8, 1.2)
        if driver < fails_at[host] < finish:
            repeated += 1
            failures.add((host, fails_at[host]))
            heapq.heappush(free, (fails_at[host] + RETURN_SECONDS, host))
            continue
        if fails_at[host] <= driver:
            fails_at[host] = driver + rng.expovariate(1 / mean)
        left, end = left - 1, max(end, finish)
        heapq.heappush(free, (finish, host))
    return Course(end, shards * task_seconds / (HOSTS * CORES), len(failures), repeated)


class Nothing:
    """An engine whose tasks take no time: what is left is the job's own cost."""

    def run(self, work, tasks):  # type: ignore[no-untyped-def]
        for task in tasks:
            yield task, work(task.given)


def shown_order() -> Iterator[str]:
    """Yield what an exact shuffle of a trillion records costs, and that workers' slices are disjoint."""
    order = Order(RECORDS, [("shuffle", [7, 0])])
    start = time.perf_counter()
    count = 1 << 20
    batch = int64s(order.records(RECORDS // 2, RECORDS // 2 + count))
    rate = count / (time.perf_counter() - start)
    assert len(np.unique(batch)) == count
    yield f"order of {RECORDS:,} records: {rate / 1e6:.1f} million positions/s on one core, nothing stored"
    slices = [Order(RECORDS, [("shuffle", [7, 0]), ("shard", [HOSTS, host])]) for host in range(HOSTS)]
    together = np.concatenate([int64s(one.records(10**6, 10**6 + 512)) for one in slices])
    assert len(np.unique(together)) == HOSTS * 512 == len(together)
    whole = int64s(order.records(10**6 * HOSTS, (10**6 + 512) * HOSTS))
    assert np.array_equal(np.sort(together), np.sort(whole))
    yield f"{HOSTS:,} workers' slices of 512 updates: disjoint, and together the whole"


def shown_journal(tasks: int, folder: Path) -> Iterator[str]:
    """Yield what one driver can take in, and how long a restart takes to know what is finished."""
    report = ShardReport("s3/train/part-000000-of-250000.tfrecord", file_bytes=4 << 30, records=10**7)
    work = [Task(number, report, "", 0, 0) for number in range(tasks)]
    # processor time: what one driver cannot share, whatever else the machine does
    start = time.process_time()
    journal = Journal(folder, disk=SeldomSyncing())
    JobRun(Nothing(), journal).values("verify", lambda given: given, work, ShardReport)
    seconds = time.process_time() - start
    file_bytes = sum(file.stat().st_size for file in folder.iterdir())
    rate, each = tasks / seconds, file_bytes / tasks
    yield f"journal: {rate:,.0f} results per second of the driver, {each:.0f} bytes each"
    start = time.process_time()
    JobRun(Nothing(), journal).values("verify", lambda given: given, work, ShardReport)
    again = (time.process_time() - start) / tasks
    yield f"restart: {again * 1e6:.0f} us per finished shard, {250_000 * again:.0f} s for 250,000"


def shown_index(folder: Path) -> Iterator[str]:
    """Yield how large an index is, for records of one size and of many."""
    rng = np.random.default_rng(0)
    for name, lengths in (
        ("one size", np.full(200_000, 100)),
        ("many sizes", rng.integers(1, 1000, 200_000)),
    ):
        file = folder / f"{name}.tfrecord"
        ab.write(file, (b"x" * length for length in lengths.tolist()))
        len(ab.read(file, bytes))
        per_record = file.with_name(f".{file.name}.abindex").stat().st_size / len(lengths)
        for mean in (1_000, 100_000):
            whole = per_record * PETABYTE / mean
            yield f"index, {name}: {per_record:.2f} bytes per record, {size(int(whole))} at {mean:,} bytes"


def shown_state() -> Iterator[str]:
    """Yield how much has to be kept in order to go on in mid-epoch."""
    for count in (1_000, 1_000_000):
        stream = iter(ab.from_arrays({"x": np.zeros(count)}).shuffle(seed=7).batch(64))
        next(stream)
        yield f"state of a stream over {count:,} records: {len(json.dumps(stream.get_state()))} bytes"


def shown_course() -> Iterator[str]:
    """Yield how a job over a petabyte would go."""
    for shards in (25_000, 250_000, 2_500_000):
        course = simulated(shards)
        yield (
            f"{shards:9,} shards of {size(PETABYTE // shards):>8}: {course.seconds / 60:6.1f} min "
            f"({course.ideal_seconds / course.seconds:5.1%} of ideal), {course.failures} hosts failed, "
            f"{course.repeated} shards repeated"
        )


def shown_update() -> Iterator[str]:
    """Yield what an update sends: a ring sends nearly twice the gradients, whatever the number of workers."""
    for millions in (25, 1_000):
        sent = 2 * (HOSTS - 1) / HOSTS * millions * 4e6
        seconds = sent / NETWORK_BYTES_PER_SECOND
        yield (
            f"{millions:,} million float32 parameters: {size(int(sent))} per worker and update, "
            f"{seconds * 1e3:.0f} ms at 100 Gbit/s"
        )


def shown_restart() -> Iterator[str]:
    """Yield what hosts that fail cost a training: worker 0 writes its state, reads it again and sends it."""
    storage = GIGABYTES_PER_SECOND_AND_CORE * CORES * 1e9
    between = HOURS_BETWEEN_FAILURES * 3600 / HOSTS
    for millions in (25, 1_000):
        # the weights, and two moments of each
        state = 3 * millions * 4e6
        seconds = RESTART_SECONDS + 2 * state / storage + state / NETWORK_BYTES_PER_SECOND
        yield (
            f"{millions:,} million float32 parameters: a state of {size(int(state))}, {seconds:.0f} s per "
            f"restart; with one every {between / 60:.0f} min {seconds / (between + seconds):.1%} of the time"
        )


def main() -> None:
    with TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "journal").mkdir()
        for line in (
            *shown_order(),
            *shown_index(here),
            *shown_state(),
            *shown_journal(5_000, here / "journal"),
            *shown_course(),
            *shown_update(),
            *shown_restart(),
        ):
            print(line)


if __name__ == "__main__":
    main()
