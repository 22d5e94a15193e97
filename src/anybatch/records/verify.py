"""Check every checksum of every shard, and remember that in the indexes."""

from functools import partial
from pathlib import Path

from anybatch._native import Index
from anybatch.records.index import Progress, build_index, find_index, keep_index
from anybatch.records.overview import Examined, Overview, report_on
from anybatch.records.shards import Paths, Shard, find_files
from anybatch.records.threads import Each, on_threads


def verify(
    paths: Paths, *, trust_index: bool = False, progress: Progress | None = None, each: Each = on_threads
) -> Overview:
    """Read every record of every shard and check it. A file that cannot be read does not stop the others.

    With `trust_index` a shard is not read again if it was verified before and has not changed since.
    """
    check = partial(_checked, trust_index=trust_index, progress=progress)
    return report_on(find_files(paths), check, each=each)


def index_shards(
    paths: Paths, *, force: bool = False, progress: Progress | None = None, each: Each = on_threads
) -> Overview:
    """Make the index of every shard that has no fresh one; with `force` of every shard."""
    look = partial(known_or_built, force=force, progress=progress)
    return report_on(find_files(paths), look, each=each)


def known_or_built(shard: Shard, *, force: bool = False, progress: Progress | None = None) -> Examined:
    """Return a shard's index, made and kept if there was none."""
    known = None if force else find_index(shard)
    if known is not None:
        return _passed(*known, progress)
    index = build_index(shard, progress=progress)
    return index, keep_index(shard, index), False


def _checked(shard: Shard, *, trust_index: bool, progress: Progress | None) -> Examined:
    known = find_index(shard) if trust_index else None
    if known is not None and known[0].verified:
        return _passed(*known, progress)
    index = build_index(shard, check_data=True, progress=progress)
    return index, keep_index(shard, index), False


def _passed(index: Index, sidecar: Path, progress: Progress | None) -> Examined:
    if progress:
        progress(index.file_bytes)
    return index, sidecar, True
