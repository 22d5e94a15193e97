"""The physical limit: copy bytes out of the page cache and checksum them, and nothing else.

Block by block into memory that stays in the processor's cache, which nobody can do who hands batches over:
a limit to be near to, not one to reach.
"""

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anybatch._native import masked_crc32c
from benchmarks.attempt import CallAttempt, Outcome, Proof
from benchmarks.job import Job
from benchmarks.machine import cores

BLOCK_BYTES = 1 << 18


def one_thread(job: Job) -> CallAttempt:
    """Return the limit of one thread."""
    return CallAttempt(job.shards, partial(touch_all, threads=1))


def all_cores(job: Job) -> CallAttempt:
    """Return the limit of as many threads as there are cores, a shard at a time each."""
    return CallAttempt(job.shards, partial(touch_all, threads=cores()))


def by_batches(job: Job) -> CallAttempt:
    """Return the limit of memory: one batch is held, and all bytes come into the place where it lies."""
    return CallAttempt(job.shards, partial(touch_all, threads=1, block_bytes=batch_bytes(job)))


def opened(job: Job) -> CallAttempt:
    """Return the limit of opening: every shard is opened and asked for its size, nothing is read."""
    return CallAttempt(job.shards, lambda shards: {"file_bytes": sum(map(size_of, shards))})


@dataclass(slots=True)
class OneBatchAttempt:
    """As many bytes as a batch has, copied and checksummed: no first or next batch can be there before."""

    job: Job

    def warm_up(self) -> None:
        """Nothing is done for the first time later."""

    def check(self) -> Proof:
        """Return how many bytes there are in all."""
        return touch_all(self.job.shards, threads=1)

    def prepare(self) -> None:
        """Nothing to describe."""

    def run(self) -> Outcome:
        """Take a batch's bytes; the clock runs from here, or from the start of the process."""
        start = self.job.asked_at if self.job.work == "first_batch_of_process" else time.monotonic()
        with Path(self.job.shards[0]).open("rb", buffering=0) as file:
            masked_crc32c(file.read(batch_bytes(self.job)))
        return Outcome({}, time.monotonic() - start)


def one_batch(job: Job) -> OneBatchAttempt:
    """Return the limit of waiting for one batch."""
    return OneBatchAttempt(job)


def batch_bytes(job: Job) -> int:
    """Return how many bytes of the files a batch is made of."""
    rows = min(job.batch, job.records)
    return rows * sum(map(size_of, job.shards)) // max(1, job.records)


def size_of(path: str) -> int:
    """Open a file and return its size."""
    with Path(path).open("rb", buffering=0) as file:
        return os.fstat(file.fileno()).st_size


def touch_all(shards: Sequence[str], *, threads: int, block_bytes: int = BLOCK_BYTES) -> Proof:
    """Copy and checksum every byte; return how many there were."""
    with ThreadPoolExecutor(threads) as pool:
        return {"file_bytes": sum(pool.map(partial(touch_file, block_bytes=block_bytes), shards))}


def touch_file(path: str, *, block_bytes: int) -> int:
    """Copy and checksum one file in blocks; return its size."""
    block, total = memoryview(bytearray(block_bytes)), 0
    with Path(path).open("rb", buffering=0) as file:
        while got := file.readinto(block):
            masked_crc32c(block[:got])
            total += got
    return total
