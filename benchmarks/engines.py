"""The same jobs on threads of this process and on a Ray cluster of two nodes with the same cores.

    python -m benchmarks.engines [--rounds 5] [--times 32] [--shards 4] [--least 0.9]

Each job is done in turns by the ordinary command, the local engine and Ray; files are compared by digest.
It ends with 1 if Ray reaches less of the local engine in one of them than it should.
Starting costs the same however much there is to do, so a fair comparison takes jobs of seconds: --times 64.
"""

import argparse
import hashlib
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anybatch import records, scale
from anybatch.memory import tree_of
from anybatch.units import size
from benchmarks.datasets import DATASETS, ensure

DATA = Path(__file__).parent / ".data"


@contextmanager
def two_nodes(cores: int) -> Iterator[str]:
    """Give the address of a cluster of two nodes that share so many cores."""
    from ray.cluster_utils import Cluster

    logging.getLogger("ray").setLevel(logging.ERROR)
    first = {"num_cpus": cores - cores // 2, "memory": 8 << 30, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=first)
    try:
        cluster.add_node(num_cpus=cores // 2, memory=8 << 30)
        yield cluster.address
    finally:
        cluster.shutdown()


def linked(files: tuple[str, ...], times: int, folder: Path) -> list[str]:
    """Return so many names for each file: a large data set that the page cache holds."""
    folder.mkdir()
    names = []
    for number in range(times):
        for file in files:
            link = folder / f"part-{number:03d}-{Path(file).name}"
            link.symlink_to(file)
            names.append(str(link))
    return names


def jobs(files: list[str], few: list[str]) -> dict[str, Callable[[Any, Path], Any]]:
    """Return every job as a function of an engine, None for the ordinary command, and a new folder."""

    def verify(engine: Any, _: Path) -> Any:
        return records.verify(files) if engine is None else scale.verify(files, engine=engine)

    def repair(engine: Any, to: Path) -> Any:
        return records.repair(few, to) if engine is None else scale.repair(few, str(to), engine=engine)

    def reshard(engine: Any, to: Path, **options: Any) -> Any:
        deal = records.reshard if engine is None else partial(scale.reshard, engine=engine)
        return deal(few, str(to), 16, **options)

    return {
        "verify": verify,
        "repair": repair,
        "reshard": reshard,
        "reshard --shuffle": partial(reshard, shuffle=True),
    }


def processor_seconds() -> float:
    """Return the processor time of this process and all below it: the nodes and their workers, too."""
    spent = 0
    for process in tree_of(os.getpid()):
        with suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            spent += int(fields[11]) + int(fields[12])
    return spent / os.sysconf("SC_CLK_TCK")


def digest(file: Path) -> str:
    """Return what tells the content of a file from others, without holding it."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, hashlib.blake2b).hexdigest()


def timed(job: Callable[[Any, Path], Any], engine: Any, folder: Path) -> tuple[float, float, dict[str, str]]:
    """Return the seconds that a job takes, those of processors, and what it has written."""
    start, spent = time.perf_counter(), processor_seconds()
    job(engine, folder)
    seconds, spent = time.perf_counter() - start, processor_seconds() - spent
    made = folder.glob("*") if folder.exists() else ()
    written = {file.name: digest(file) for file in made if not file.name.startswith(".")}
    shutil.rmtree(folder, ignore_errors=True)
    return seconds, spent, written


def tasks_per_second(engine: Any, count: int = 2_000) -> float:
    """Return how many tasks that do nothing pass through an engine."""
    tasks = [scale.Task(number, number, "nothing", 0, 0) for number in range(count)]
    for some in (tasks[:100], tasks):
        start = time.perf_counter()
        assert len(list(engine.run(abs, some))) == len(some)
    return count / (time.perf_counter() - start)


def compare(
    name: str, job: Callable[[Any, Path], Any], engines: dict[str, Any], total: int, args: Any
) -> float:
    """Run one job in turns, print its rates, and return what Ray reaches of the local engine."""
    seconds: dict[str, list[float]] = {who: [] for who in engines}
    spent: dict[str, list[float]] = {who: [] for who in engines}
    for number in range(args.rounds + 1):
        written = []
        for who, engine in engines.items():
            took, cpu, files = timed(job, engine, args.folder / "new")
            written.append(files)
            # the first round starts workers and fills caches
            if number:
                seconds[who].append(took)
                spent[who].append(cpu)
        assert all(files == written[0] for files in written), f"{name}: the files differ"
    # whatever else a machine does only ever takes time: the fastest round is the one that met least of it
    rates = {who: total / min(took) for who, took in seconds.items()}
    for who, rate in rates.items():
        spread = (
            f"{min(seconds[who]):.2f} to {max(seconds[who]):.2f} s, {min(spent[who]):.2f} s of processors"
        )
        print(f"{name:18} {who:9} {rate / 1e9:5.2f} GB/s  {rate / rates['local']:6.1%} of local  ({spread})")
    return rates["ray"] / rates["local"]


def below(least: float, reached: dict[str, float]) -> list[str]:
    """Return what is to be said of every job that stays below the least.

    >>> below(0.9, {"verify": 0.95, "repair": 0.9, "reshard": 0.801})
    ['reshard: Ray reaches 80.1% of the local engine, and 90.0% is the least']
    """
    return [
        f"{name}: Ray reaches {share:.1%} of the local engine, and {least:.1%} is the least"
        for name, share in reached.items()
        if share < least
    ]


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--times", type=int, default=32, help="how often verify meets each shard; the others meet an eighth"
    )
    parser.add_argument(
        "--shards", type=int, default=4, help="how many there are: 4 are of the size that TensorFlow advises"
    )
    parser.add_argument("--only", help="one job, such as verify or 'reshard --shuffle'")
    parser.add_argument(
        "--least", type=float, default=0.9, help="what Ray has to reach of the local engine's rate"
    )
    return parser.parse_args()


def main() -> int:
    args, reached = parsed(), {}
    written = ensure(DATASETS["floats"], DATA, quick=False)
    cores = records.usable_cores()
    with TemporaryDirectory(dir=DATA) as folder, two_nodes(cores) as address:
        args.folder = Path(folder)
        shards = records.reshard(list(written.shards), str(args.folder / "shards"), args.shards).files
        files = linked(shards, args.times, args.folder / "links")
        few = files[: max(1, args.times // 8) * len(shards)]
        told = [size(sum(Path(file).stat().st_size for file in some)) for some in (files, few)]
        print(f"{cores} cores; verify reads {told[0]}, the others {told[1]}")
        with scale.opened_engine("ray", address) as ray, scale.opened_engine("local") as local:
            engines = {"ordinary": None, "local": local, "ray": ray}
            print(f"Ray starts and ends {tasks_per_second(ray):,.0f} tasks per second that do nothing")
            for name, job in jobs(files, few).items():
                if args.only not in {None, name}:
                    continue
                met = files if name == "verify" else few
                total = sum(Path(file).stat().st_size for file in met)
                reached[name] = compare(name, job, engines, total, args)
    missed = below(args.least, reached)
    for line in missed:
        print(line, file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
