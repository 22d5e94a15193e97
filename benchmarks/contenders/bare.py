"""The physical limit: copy all bytes out of the page cache and checksum them, and nothing else.

The bytes go to fresh places all the time, as they must for whoever keeps a batch while the next is
made: a copy that stays in the processor's cache would be a limit for nobody.
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
KEPT_BYTES = 32 << 20


def one_thread(job: Job) -> CallAttempt:
    """Return the limit of one thread."""
    return CallAttempt(job.shards, partial(touch_all, threads=1))


def all_cores(job: Job) -> CallAttempt:
    """Return the limit of as many threads as there are cores, a shard at a time each."""
    return CallAttempt(job.shards, partial(touch_all, threads=cores()))


def touch_all(shards: Sequence[str], *, threads: int) -> Proof:
    """Copy and checksum every byte; return how many there were."""
    parts = [shards[number::threads] for number in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        return {"file_bytes": sum(pool.map(touch_files, parts))}


def touch_files(paths: Sequence[str]) -> int:
    """Copy and checksum some files in blocks, into memory that is made once; return their size."""
    kept = memoryview(bytearray(KEPT_BYTES))
    return sum(touch_file(path, kept) for path in paths)


def touch_file(path: str, kept: memoryview) -> int:
    """Copy and checksum one file in blocks; return its size."""
    total = 0
    with Path(path).open("rb", buffering=0) as file:
        while True:
            start = total // BLOCK_BYTES * BLOCK_BYTES % KEPT_BYTES
            got = file.readinto(kept[start : start + BLOCK_BYTES])
            if not got:
                return total
            masked_crc32c(kept[start : start + got])
            total += got
