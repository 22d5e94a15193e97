"""Look into every file: its index, and a survey of its records underneath the decoding."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from anybatch.doctor.measure.facts import Progress, ShardFacts
from anybatch.errors import NoFiles
from anybatch.records import Each, look_into, on_threads, seen_in

WHOLE_BYTES = 256 << 20
"""Data sets up to this size are read in full, larger ones by a sample."""


def refuse_missing(files: Sequence[str]) -> None:
    """Raise `NoFiles` for the first name that nothing has. What is there and cannot be read is a finding."""
    for file in files:
        try:
            # of the name itself: a link to nowhere is there
            Path(file).lstat()
        except (FileNotFoundError, NotADirectoryError):
            raise NoFiles(file) from None
        except OSError:
            continue


def reads_everything(files: Sequence[str], wanted: bool | None) -> bool:
    """Whether every record is looked into: as wanted, else where that takes no more than a moment."""
    return sum(_size(file) for file in files) <= WHOLE_BYTES if wanted is None else wanted


def _size(file: str) -> int:
    try:
        return Path(file).stat().st_size
    except OSError:
        return 0


def shard_facts(
    files: Sequence[str], *, everything: bool, progress: Progress | None = None, each: Each = on_threads
) -> tuple[ShardFacts, ...]:
    """Return what each file holds. With `everything` every checksum is checked and every record surveyed."""
    return tuple(each(partial(facts_of, everything=everything, progress=progress), files))


def facts_of(file: str, *, everything: bool, progress: Progress | None = None) -> ShardFacts:
    """Return what one file holds; nothing about it is an exception."""
    look = look_into(file, everything=everything, progress=progress)
    survey = look.survey
    return ShardFacts(look.report, look.sizes, survey.records, survey.malformed, tuple(seen_in([survey])))
