"""The physical limit: copy all bytes out of the page cache and checksum them, and nothing else.

Block by block into memory that stays in the processor's cache, which nobody can do who hands batches over:
a limit to be near to, not one to reach.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from anybatch._native import masked_crc32c
from benchmarks.attempt import CallAttempt, Proof
from benchmarks.job import Job
from benchmarks.machine import cores

BLOCK_BYTES = 1 << 18


def one_thread(job: Job) -> CallAttempt:
    """Return the limit of one thread."""
    return CallAttempt(job.shards, partial(touch_all, threads=1))


def all_cores(job: Job) -> CallAttempt:
    """Return the limit of as many threads as there are cores, a shard at a time each."""
    return CallAttempt(job.shards, partial(touch_all, threads=cores()))


def touch_all(shards: Sequence[str], *, threads: int) -> Proof:
    """Copy and checksum every byte; return how many there were."""
    with ThreadPoolExecutor(threads) as pool:
        return {"file_bytes": sum(pool.map(touch_file, shards))}


def touch_file(path: str) -> int:
    """Copy and checksum one file in blocks; return its size."""
    block, total = memoryview(bytearray(BLOCK_BYTES)), 0
    with Path(path).open("rb", buffering=0) as file:
        while got := file.readinto(block):
            masked_crc32c(block[:got])
            total += got
    return total
