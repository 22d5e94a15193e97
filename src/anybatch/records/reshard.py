"""All records of some shards into new shards of equal length, in their order or shuffled."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from anybatch._native import Batch, Index, Writer
from anybatch.errors import CorruptRecord, Damage, NothingToRead, ShardChanged
from anybatch.records.deal import Dealer, WrongCount
from anybatch.records.index import Progress, build_index, keep_index, load_index, load_or_build
from anybatch.records.reading import Bounds
from anybatch.records.record_set import RecordSet
from anybatch.records.shards import Paths, Shard, find_shards, named_compression
from anybatch.records.sizes import Sizes, sizes_of
from anybatch.records.threads import on_threads, usable_cores
from anybatch.records.whole_files import WholeFiles, refuse_existing
from anybatch.records.write import (
    even_counts,
    finish_all,
    shard_names,
    shard_writers,
    warn_of_other_sets,
    warn_of_reading_twice,
)

# what the batches that are under way hold together on average, and may hold at the very worst
_USUAL_BYTES = 64 << 20
LIMIT_BYTES = 256 << 20
_MOST_RECORDS = 1 << 16
# a record with its framing is there once as it was read, if compressed, and once in its batch
_TIMES_HELD = 2
_BESIDES_BYTES = 64

_ENDING = re.compile(r"\.tfrecords?(\.gz|\.zlib)?$", re.IGNORECASE)
_NUMBER = re.compile(r"[-_.]\d+(-of-\d+)?$")
_ENDINGS = {"": ".tfrecord", "GZIP": ".tfrecord.gz", "ZLIB": ".tfrecord.zlib"}


@dataclass(frozen=True, slots=True)
class Resharded:
    """The new files, how many records each of them has, and what was left out."""

    files: tuple[str, ...]
    records: tuple[int, ...]
    data_bytes: int
    damaged: tuple[Damage, ...]


def reshard(
    paths: Paths,
    to: str | os.PathLike[str],
    shards: int,
    *,
    shuffle: bool = False,
    seed: int = 0,
    compression: str | None = None,
    name: str | None = None,
    on_corrupt: str = "raise",
    progress: Progress | None = None,
) -> Resharded:
    """Write all good records into `shards` new files in a folder; their lengths differ by one at most.

    `shuffle` puts them into an order that depends on the seed alone. Memory stays small however many
    there are. Nothing is overwritten; either all files appear or none.
    """
    check_arguments(shards, on_corrupt)
    sources, packed = find_shards(paths), named_compression(compression)
    files = new_names([shard.path for shard in sources], Path(to), shards, packed, name)
    refuse_existing(files)
    warn_of_mixing([shard.path for shard in sources], files)
    indexes = _indexed(sources, on_corrupt, progress)
    sizes = sizes_of(indexes)
    if not sizes.records:
        raise NothingToRead([shard.path for shard in sources])
    counts = even_counts(sizes.records, shards)
    source = Source(RecordSet(sources, None, on_corrupt), sizes, seed if shuffle else None)
    source = replace(source, progress=_scaled(progress, sizes, indexes))
    with WholeFiles() as whole, source.opened(whole, Path(files[0])) as batches:
        _deal(batches, shard_writers(whole, files, packed), counts, sources)
    return Resharded(tuple(files), tuple(counts), sizes.total_bytes, _damage(sources, indexes))


def check_arguments(shards: int, on_corrupt: str) -> None:
    """Refuse what nobody can do."""
    if shards < 1:
        raise ValueError(f"shards is {shards}; write at least 1")
    if on_corrupt not in {"raise", "skip"}:
        raise ValueError(f'on_corrupt is {on_corrupt!r}; it can be "raise" or "skip"')


def new_names(sources: Iterable[str], to: Path, shards: int, compression: str, name: str | None) -> list[str]:
    """Return the files to write; without a name they are called as the sources, if those have one in common.

    >>> new_names(["a/train-00000-of-00001.tfrecord"], Path("b"), 2, "", None)
    ['b/train-00000-of-00002.tfrecord', 'b/train-00001-of-00002.tfrecord']
    """
    if name is None:
        stems = {_NUMBER.sub("", _ENDING.sub("", Path(source).name)) for source in sources}
        name = stems.pop() if len(stems) == 1 else "data"
    if not name or Path(name).name != name:
        raise ValueError(f"name is {name!r}; it is the beginning of a file's name, without a folder")
    return shard_names(str(to / (name if _ENDING.search(name) else name + _ENDINGS[compression])), shards)


def warn_of_mixing(sources: Iterable[str], files: list[str]) -> None:
    """Say where new shards come to lie beside those they are made of, or beside another set."""
    to = Path(files[0]).parent.resolve()
    beside = next((one for one in sources if Path(one).parent.resolve() == to), None)
    if beside is None:
        warn_of_other_sets(files)
    else:
        warn_of_reading_twice(beside, "holds these records already")


def batch_records(sizes: Sizes, under_way: int) -> int:
    """Return how many records to read at a time: few bytes on average, within the limit at the worst.

    >>> batch_records(Sizes(records=1000, total_bytes=1_000_000, largest_bytes=2_000), under_way=4)
    16777
    """
    usual = _USUAL_BYTES / under_way / max(1.0, sizes.mean_bytes)
    worst = LIMIT_BYTES / held_bytes(sizes.largest_bytes)
    return max(1, min(int(usual), int(worst), _MOST_RECORDS))


def held_bytes(record_bytes: int) -> int:
    """Return the most that one record takes while it is read."""
    return _TIMES_HELD * (record_bytes + _BESIDES_BYTES)


@dataclass(frozen=True, slots=True)
class Source:
    """Records to be read once, in file order or as a seed orders them."""

    records: RecordSet
    sizes: Sizes
    seed: int | None
    progress: Progress | None = None

    @contextmanager
    def opened(self, whole: WholeFiles, beside: Path) -> Iterator[Iterator[Batch]]:
        """Give the batches. To be shuffled, compressed shards are first unpacked beside the new files."""
        if self.seed is None or not any(shard.compression for shard in self.records.shards):
            yield self.batches()
            return
        with whole.scratch_folder(beside) as folder:
            shards = enumerate(self.records.shards)
            plain = tuple(self.unpacked(shard, folder / str(number)) for number, shard in shards)
            yield replace(self, records=replace(self.records, shards=plain)).batches()

    def batches(self) -> Iterator[Batch]:
        """Yield the records as they are, a bounded number of bytes at a time."""
        size = batch_records(self.sizes, usable_cores() + 2)
        limit_bytes = max(LIMIT_BYTES, held_bytes(self.sizes.largest_bytes))
        if self.seed is None:
            found = self.records.native_in_file_order(size, Bounds(limit_bytes=limit_bytes))
        else:
            found = self.records.native_ordered(
                size, [("shuffle", [self.seed, 0])], Bounds(limit_bytes=limit_bytes)
            )
        for batch in found:
            yield batch
            if self.progress:
                self.progress(len(batch.columns[0][0]))

    def unpacked(self, shard: Shard, path: Path) -> Shard:
        """Return a shard as a plain file; what is compressed is written there, without what is damaged."""
        if not shard.compression:
            return shard
        writer = Writer(path, "")
        for batch in replace(self, records=replace(self.records, shards=(shard,)), seed=None).batches():
            values, (offsets,) = batch.columns[0]
            writer.write_batch(values, offsets)
        writer.finish()
        return Shard(str(path), "")


def _deal(
    batches: Iterator[Batch], writers: Iterator[Writer], counts: list[int], sources: tuple[Shard, ...]
) -> None:
    dealer = Dealer(writers, counts)
    try:
        for batch in batches:
            dealer.add(batch)
        dealer.finish()
    except WrongCount:
        problem = f"{sum(counts):,} records were counted, and not as many read"
        raise ShardChanged(sources[0].path, problem) from None
    finish_all(writers)


def _indexed(sources: tuple[Shard, ...], on_corrupt: str, progress: Progress | None) -> list[Index]:
    """Return the indexes of all sources; damage is raised if it may not be left out."""
    indexes = list(on_threads(lambda shard: counting_index(shard, on_corrupt, progress=progress), sources))
    damaged = _damage(sources, indexes)
    if damaged and on_corrupt == "raise":
        raise CorruptRecord(*damaged[0])
    return indexes


def counting_index(shard: Shard, on_corrupt: str, *, progress: Progress | None = None) -> Index:
    """Return an index that knows how many records of a shard there will be."""
    if on_corrupt == "raise":
        return load_or_build(shard, progress=progress)
    index = load_index(shard)
    if index is None or not index.verified:
        # damage that is found only on reading would make the files unequal
        index = build_index(shard, check_data=True, progress=progress)
        keep_index(shard, index)
    elif progress:
        progress(index.file_bytes)
    return index


def _damage(sources: tuple[Shard, ...], indexes: list[Index]) -> tuple[Damage, ...]:
    pairs = zip(sources, indexes, strict=True)
    return tuple((shard.path, *where) for shard, index in pairs for where in index.damaged)


def _scaled(progress: Progress | None, sizes: Sizes, indexes: list[Index]) -> Progress | None:
    """Return a progress in data bytes that counts in bytes of the files, which may be compressed."""
    if progress is None:
        return None
    scale = sum(index.file_bytes for index in indexes) / max(1, sizes.total_bytes)
    return lambda data_bytes: progress(round(data_bytes * scale))
