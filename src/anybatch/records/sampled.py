"""Which files these are: told by their sizes and a few of their bytes, wherever they lie."""

import hashlib
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from anybatch.records.shards import Shard

_SAMPLE_BYTES = 4096
# of more files the sizes of all count, and the bytes of so many: a few seconds on a slow disk, not minutes
_MOST_FILES = 256


def sizes_and_samples(shards: Sequence[Shard]) -> tuple[int, str]:
    """Return how many bytes the files have, and a hash of their sizes and of some of their content.

    Of each file the beginning, the middle and the end are read, once per process; of very many files, those
    of some. Names and times do not count: a data set that was copied or moved is the same.
    """
    found = [_size_and_time(shard.path) for shard in shards]
    whole = hashlib.sha256(repr([size for size, _ in found]).encode())
    count = min(len(shards), _MOST_FILES)
    for at in (number * len(shards) // count for number in range(count)):
        whole.update(_samples(shards[at].path, *found[at]))
    return sum(size for size, _ in found), whole.hexdigest()


def _size_and_time(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - there may be ten thousand of them
    except OSError:
        # whoever reads it says so; nobody should lose a state over it
        return 0, 0
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=4 * _MOST_FILES)
def _samples(path: str, size: int, _time: int) -> bytes:
    starts = (0, max(0, size - _SAMPLE_BYTES) // 2, max(0, size - _SAMPLE_BYTES))
    whole = hashlib.sha256()
    try:
        with Path(path).open("rb", buffering=0) as file:
            for start in starts:
                file.seek(start)
                whole.update(file.read(_SAMPLE_BYTES))
    except OSError:
        return b"gone"
    return whole.digest()
