"""The index of each shard: taken from its sidecar, or made once and kept there."""

import hashlib
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import cast

from anybatch._native import Index, Scan, Survey
from anybatch.records.patience import patience
from anybatch.records.shards import Shard
from anybatch.records.threads import give_way, on_threads

Progress = Callable[[int], None]
"""Called with how many more bytes of the files have been passed."""

_SLICE_BYTES = 64 << 20


def sidecar_paths(path: str) -> Iterator[Path]:
    """Yield where a shard's index may lie: beside it, or in the user's cache folder."""
    shard = Path(path).absolute()
    # a dot-file, so that `train/*` never matches it
    yield shard.with_name(f".{shard.name}.abindex")
    # seldom asked for, and not for nothing: 1,024 times both paths took 65 ms, by a profile, and loading 50
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = hashlib.sha256(os.fsencode(shard)).hexdigest()[:32]
    yield cache / "anybatch" / "index" / f"{name}.abindex"


def sidecar_beside(path: str) -> Path:
    """Return where a shard's index lies if its folder can be written."""
    return next(sidecar_paths(path))


def load_index(shard: Shard) -> Index | None:
    """Return the index of a shard that has a fresh one."""
    found = find_index(shard)
    return None if found is None else found[0]


def find_index(shard: Shard) -> tuple[Index, Path] | None:
    """Return a shard's fresh index and the sidecar that holds it."""
    found = []
    for sidecar in sidecar_paths(shard.path):
        index = Index.load(shard.path, shard.compression, sidecar)
        if index is not None:
            found.append((index, sidecar))
            if index.verified:
                break
    # whoever may not write beside the shard has verified it into the cache folder
    return max(found, key=lambda one: one[0].verified, default=None)


def keep_index(shard: Shard, index: Index) -> Path | None:
    """Write a sidecar where that is possible; return where, or None: then it is made anew next time."""
    for sidecar in sidecar_paths(shard.path):
        with suppress(OSError):
            sidecar.parent.mkdir(parents=True, exist_ok=True)
            index.save(sidecar)
            return sidecar
    return None


def build_index(
    shard: Shard,
    *,
    check_data: bool = False,
    survey: Survey | None = None,
    progress: Progress | None = None,
) -> Index:
    """Return a new index from one walk over the shard. `check_data` reads large records too.

    With a `survey` all data is checked, and every sound record looked into on the way.
    """
    scan = Scan(shard.path, shard.compression, check_data=check_data or survey is not None)
    done, more = 0, True
    while more:
        give_way()
        more = scan.advance(_SLICE_BYTES) if survey is None else scan.survey(_SLICE_BYTES, survey)
        if progress:
            progress(scan.bytes_done - done)
        done = scan.bytes_done
    return scan.finish()


def bad_numbers(index: Index) -> list[int]:
    """Return the numbers of the records that an index knows to be damaged."""
    if not index.bad_records:
        return []

    def offset(number: int) -> int:
        return memoryview(index.extents(number, number + 1)).cast("q")[0]

    numbers = [bisect_left(range(index.records), at, key=offset) for at, _, _ in index.damaged]
    # a damaged stretch that holds no record whose end is known has no number either
    return [
        number
        for number, (at, _, _) in zip(numbers, index.damaged, strict=True)
        if number < index.records and offset(number) == at
    ]


def load_or_build(shard: Shard, *, progress: Progress | None = None) -> Index:
    """Return the index of a shard, made and kept if there was none."""
    return load_or_build_all([shard], progress=progress)[0]


def load_indexes(shards: Iterable[Shard]) -> list[Index | None]:
    """Return the fresh indexes there are, reading nothing but sidecars."""
    # a sidecar is read faster than a thread starts
    return [load_index(shard) for shard in shards]


def load_or_build_all(shards: Sequence[Shard], *, progress: Progress | None = None) -> list[Index]:
    """Return the index of every shard; those that are missing are made, several at a time, and kept."""
    indexes = load_indexes(shards)
    if progress:
        progress(sum(index.file_bytes for index in indexes if index is not None))
    missing = [at for at, index in enumerate(indexes) if index is None]
    unknown = [shards[at] for at in missing]
    with nullcontext(progress) if progress else _patience(unknown) as tell:
        for at, index in zip(missing, _build_all(unknown, tell), strict=True):
            indexes[at] = index
    return cast("list[Index]", indexes)


def _patience(shards: Sequence[Shard]) -> AbstractContextManager[Progress]:
    """Nobody asked for an index by name: they are told what they wait for."""
    n_bytes = 0
    for shard in shards:
        # one that is gone is told of where it is opened
        with suppress(OSError):
            n_bytes += Path(shard.path).stat().st_size
    return patience(
        f"indexing {len(shards):,} new files" if len(shards) > 1 else "indexing a new file", n_bytes
    )


def _build_all(shards: Sequence[Shard], progress: Progress | None) -> Iterable[Index]:
    def build(shard: Shard) -> Index:
        index = build_index(shard, progress=progress)
        keep_index(shard, index)
        return index

    return on_threads(build, shards) if shards else []
