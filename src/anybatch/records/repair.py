"""Copies of shards without what is damaged in them, and the damaged bytes kept beside."""

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from anybatch._native import Index
from anybatch.errors import Damage, NotRecords, ShardChanged
from anybatch.records.index import Progress, build_index, keep_index
from anybatch.records.runs import Run, write_runs
from anybatch.records.shards import Paths, Shard, find_shards
from anybatch.records.threads import on_threads
from anybatch.records.unpack import Unpacked, unpack
from anybatch.records.whole_files import WholeFiles, new_file, refuse_existing

BROKEN = "the compressed stream is damaged; nothing after this point can be read"


@dataclass(frozen=True, slots=True)
class Repaired:
    """What became of one shard. Without a copy (`only_damaged`) `file` is None."""

    source: str
    file: str | None
    records: int
    damaged: tuple[Damage, ...] = ()
    quarantine: str | None = None
    ledger: str | None = None


@dataclass(frozen=True, slots=True)
class _Salvaged:
    """A shard's plain bytes, and what in them is good and what is not."""

    source: Shard
    plain: str
    index: Index
    damaged: tuple[Damage, ...]


def repair(
    paths: Paths,
    to: str | os.PathLike[str],
    *,
    only_damaged: bool = False,
    progress: Progress | None = None,
) -> list[Repaired]:
    """Write the good records of every shard to a shard of the same name in another folder.

    What is damaged goes to `NAME.damaged`, and where it lay to `NAME.damaged.json`. Nothing is
    overwritten; either all files appear or none. Every record of a copy has been checked.
    """
    shards, folder = find_shards(paths), Path(to)
    targets = target_names([shard.path for shard in shards], folder)
    refuse_existing(targets)
    with WholeFiles() as whole:
        work = _Work(whole, only_damaged, progress)
        made = list(on_threads(lambda job: work.repair(*job), zip(shards, targets, strict=True)))
    for shard, (repaired, index) in zip(shards, made, strict=True):
        _keep(shard, repaired, index)
    return [repaired for repaired, _ in made]


def repair_shard(shard: Shard, target: Path, *, only_damaged: bool = False) -> Repaired:
    """Return what became of one shard, repaired by itself; a second time replaces the first."""
    with WholeFiles(overwrite=True) as whole:
        repaired, index = _Work(whole, only_damaged, None).repair(shard, target)
    _keep(shard, repaired, index)
    return repaired


def target_names(files: Iterable[str], folder: Path) -> list[Path]:
    """Return where each file goes; an error if two of them would have one name.

    >>> target_names(["train/a.tfrecord"], Path("clean"))
    [PosixPath('clean/a.tfrecord')]
    """
    names = [Path(file).name for file in files]
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(
            f"{len(twice):,} names stand for several files, `{twice[0]}` first; repair one folder at a time"
        )
    return [folder / name for name in names]


@dataclass(frozen=True, slots=True)
class _Work:
    """One repair of many shards; its methods run on several threads at once."""

    whole: WholeFiles
    only_damaged: bool
    progress: Progress | None

    def repair(self, shard: Shard, target: Path) -> tuple[Repaired, Index | None]:
        """Return what became of a shard, and the index of its copy."""
        index = self._examined(shard)
        if index is None:
            return self._from_spool(shard, target)
        damaged = _ledger(shard, index)
        if not damaged:
            return self._copy_whole(shard, target, index)
        if shard.compression:
            return self._from_spool(shard, target)
        return self._without_damage(_Salvaged(shard, shard.path, index, damaged), target)

    def _examined(self, shard: Shard) -> Index | None:
        try:
            return build_index(shard, check_data=True, progress=self.progress)
        except NotRecords:
            if not shard.compression:
                raise
            # decompressed with more care it may yet hold some
            return None

    def _copy_whole(self, shard: Shard, target: Path, index: Index) -> tuple[Repaired, Index | None]:
        if self.only_damaged:
            return Repaired(shard.path, None, index.records), None
        copy = self.whole.begin(target)
        with new_file(copy) as out:
            write_runs(shard.path, [Run(0, index.file_bytes)], out, progress=self.progress)
        checked = self._checked(shard, copy, index.records)
        return Repaired(shard.path, str(target), index.records), checked

    def _from_spool(self, shard: Shard, target: Path) -> tuple[Repaired, Index | None]:
        with self.whole.scratch_folder(target) as scratch:
            spool = scratch / target.name
            unpacked = unpack(shard, spool, progress=self.progress)
            try:
                index = build_index(Shard(str(spool), ""), check_data=True)
            except NotRecords as error:
                raise NotRecords(shard.path, error.why) from None
            damaged = _ledger(shard, index) + _broken(shard, unpacked)
            return self._without_damage(_Salvaged(shard, str(spool), index, damaged), target)

    def _without_damage(self, found: _Salvaged, target: Path) -> tuple[Repaired, Index | None]:
        runs = found.index.good_runs()
        kept = sum(records for *_, records in runs)
        copy = self.whole.begin(target)
        good = [Run(start, end - start) for start, end, _ in runs]
        with new_file(copy) as out:
            packed = found.source.compression
            write_runs(found.plain, good, out, compression=packed, progress=self.progress)
        checked = self._checked(found.source, copy, kept)
        quarantine, ledger = self._quarantined(found, target, kept)
        return Repaired(found.source.path, str(target), kept, found.damaged, quarantine, ledger), checked

    def _quarantined(self, found: _Salvaged, target: Path, kept: int) -> tuple[str, str]:
        quarantine = target.with_name(target.name + ".damaged")
        ledger = target.with_name(target.name + ".damaged.json")
        with new_file(self.whole.begin(quarantine)) as out:
            write_runs(found.plain, [Run(offset, length) for _, offset, length, _ in found.damaged], out)
        document = ledger_document(found.source, kept, found.damaged)
        with new_file(self.whole.begin(ledger)) as out:
            out.write(json.dumps(document, indent=2).encode() + b"\n")
        return str(quarantine), str(ledger)

    def _checked(self, shard: Shard, copy: Path, expected: int) -> Index | None:
        if expected == 0:
            return None
        index = build_index(Shard(str(copy), shard.compression), check_data=True, progress=self.progress)
        if index.damaged or index.records != expected:
            problem = f"{expected:,} good records were found, {index.records:,} could be copied"
            raise ShardChanged(shard.path, problem)
        return index


def ledger_document(source: Shard, kept: int, damaged: Iterable[Damage]) -> dict[str, object]:
    """Return what `NAME.damaged.json` says: where each piece lay in the shard, and lies in the quarantine.

    The offsets of a compressed shard count its uncompressed bytes.
    """
    pieces, at = [], 0
    for _, offset, length, reason in damaged:
        pieces.append({"offset": offset, "length": length, "reason": reason, "at": at})
        at += length
    return {
        "file": source.path,
        "compression": source.compression or None,
        "records_kept": kept,
        "pieces": pieces,
    }


def _keep(shard: Shard, repaired: Repaired, index: Index | None) -> None:
    if repaired.file is not None and index is not None:
        # a move changes neither size nor time: what was verified is known to be good
        keep_index(Shard(repaired.file, shard.compression), index)


def _ledger(shard: Shard, index: Index) -> tuple[Damage, ...]:
    return tuple((shard.path, *where) for where in index.damaged)


def _broken(shard: Shard, unpacked: Unpacked) -> tuple[Damage, ...]:
    if unpacked.broken_at is None:
        return ()
    return ((shard.path, unpacked.stream_bytes, 0, f"{BROKEN} (byte {unpacked.broken_at:,} of the file)"),)
