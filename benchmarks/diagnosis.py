"""What the doctor takes on data that is large: a sample of it, and a full pass beside `verify`.

    python -m benchmarks.diagnosis [--gigabytes 10] [--rounds 3] [--data images floats integers]

It ends with 1 where a sample of 10 GB takes 30 s or 300 MB, or a full pass twice as long as `verify`.
The commands run as a user runs them, each in a fresh process. For the sample the page cache is emptied of the
files first; the two full passes take turns on files that were just read.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

from anybatch.units import size
from benchmarks.contend import evict
from benchmarks.datasets import DATASETS, ensure
from benchmarks.proc import Family

DATA = Path(__file__).parent / ".data"
SAMPLED_EVERY_SECONDS = 0.004
MOST_SECONDS, MOST_BYTES, LEAST_OF_VERIFY = 30, 300_000_000, 0.5


@dataclass(frozen=True, slots=True)
class Run:
    """One command that came to its end."""

    seconds: float
    processor_seconds: float
    peak_bytes: int
    told: Any


def run(*arguments: str) -> Run:
    """Run a command of anybatch and watch what memory it holds."""
    command = [sys.executable, "-m", "anybatch", *arguments, "--json"]
    start, spent = time.perf_counter(), os.times()
    with TemporaryFile("w+") as answer, subprocess.Popen(command, stdout=answer) as process:
        family, peak_bytes = Family(process.pid), 0
        while process.poll() is None:
            peak_bytes = max(peak_bytes, family.anonymous_bytes() or 0)
            time.sleep(SAMPLED_EVERY_SECONDS)
        family.close()
        answer.seek(0)
        told = json.load(answer)
    assert process.returncode in {0, 1}, f"{arguments[0]} could not do it"
    seconds, now = time.perf_counter() - start, os.times()
    used = now.children_user + now.children_system - spent.children_user - spent.children_system
    return Run(seconds, used, peak_bytes, told)


@contextmanager
def copies(shards: tuple[str, ...], n_bytes: int) -> Iterator[list[str]]:
    """Give as many copies of these files as come to so many bytes, each with an index of its own."""
    with TemporaryDirectory(dir=DATA) as folder:
        made, done = [], 0
        while done < n_bytes:
            source = shards[len(made) % len(shards)]
            made.append(shutil.copyfile(source, Path(folder) / f"part-{len(made):04d}.tfrecord"))
            done += made[-1].stat().st_size
        yield [str(one) for one in made]


def sampled(files: list[str]) -> bool:
    """Print what a first look at files takes that nobody has read lately; return whether that is little."""
    evict(files)
    found = run("doctor", *files)
    print(f"  sampled, nothing in the page cache: {found.seconds:.1f} s, {size(found.peak_bytes)} at most")
    return found.seconds < MOST_SECONDS and found.peak_bytes < MOST_BYTES


def full(files: list[str], rounds: int) -> bool:
    """Print what a full pass takes beside `verify`; return whether it is at least half as fast."""
    seen: dict[str, list[Run]] = {"verify": [], "doctor": []}
    for number in range(rounds + 1):
        checked, looked = run("verify", *files), run("doctor", "--all", *files)
        assert looked.told["records"] == sum(one["records"] for one in checked.told["shards"])
        # the first one fills the page cache
        if number:
            seen["verify"].append(checked)
            seen["doctor"].append(looked)
    clock, processor = (
        {name: median(getattr(one, what) for one in runs) for name, runs in seen.items()}
        for what in ("seconds", "processor_seconds")
    )
    print(
        f"  full pass: {clock['doctor']:.1f} s, verify {clock['verify']:.1f} s: "
        f"{clock['verify'] / clock['doctor']:.0%} of its speed, "
        f"{processor['verify'] / processor['doctor']:.0%} by processor time, "
        f"{size(max(one.peak_bytes for one in seen['doctor']))} at most",
        flush=True,
    )
    return clock["verify"] / clock["doctor"] >= LEAST_OF_VERIFY


def main() -> int:
    """Measure as the command line says; return 1 if anything takes too long, or too much."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", nargs="+", choices=DATASETS, default=["images", "floats", "integers"])
    chosen, fine = parser.parse_args(), []
    for name in chosen.data:
        written = ensure(DATASETS[name], DATA, quick=False)
        with copies(written.shards, round(chosen.gigabytes * 1e9)) as files:
            print(f"{name}: {len(files)} files, {size(sum(map(os.path.getsize, files)))}", flush=True)
            fine += [sampled(files), full(files, chosen.rounds)]
    return int(not all(fine))


if __name__ == "__main__":
    sys.exit(main())
