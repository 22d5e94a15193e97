"""Look into every file: its index, and a survey of its records underneath the decoding."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from anybatch.doctor.measure.facts import ShardFacts
from anybatch.records import Inspection, Sizes, inspect, usable_cores, verify

WHOLE_BYTES = 256 << 20
"""Data sets up to this size are read in full, larger ones by a sample."""


def is_small(files: Sequence[str]) -> bool:
    """Whether reading everything takes no more than a moment."""
    return sum(_size(file) for file in files) <= WHOLE_BYTES


def _size(file: str) -> int:
    try:
        return Path(file).stat().st_size
    except OSError:
        return 0


def shard_facts(files: Sequence[str], *, everything: bool) -> tuple[ShardFacts, ...]:
    """Return what each file holds. With `everything` every checksum is checked and every record surveyed."""
    if everything:
        # what it finds stands in the indexes, where the inspection takes it from
        verify(list(files), trust_index=True)
    with ThreadPoolExecutor(usable_cores()) as threads:
        looks = threads.map(lambda file: inspect([file], everything=everything), files)
        return tuple(map(_facts, looks))


def _facts(look: Inspection) -> ShardFacts:
    (report,) = look.overview.shards
    seen = tuple(feature.seen for feature in look.features)
    return ShardFacts(report, look.sizes, look.looked_at, look.not_examples, seen)


def joined(several: Sequence[Sizes]) -> Sizes:
    """Return the record sizes of all files together."""
    filled = [one for one in several if one.records]
    if not filled:
        return Sizes()
    return Sizes(
        sum(one.records for one in filled),
        sum(one.total_bytes for one in filled),
        min(one.smallest_bytes for one in filled),
        max(one.largest_bytes for one in filled),
        tuple(map(sum, zip(*(one.by_power for one in filled), strict=True))),
    )
