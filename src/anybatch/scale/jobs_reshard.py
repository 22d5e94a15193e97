"""Resharding as a job: sources examined, unpacked where they are packed, every new file made by a task."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from anybatch.errors import CorruptRecord, NothingToRead
from anybatch.records import (
    Dealing,
    Part,
    Resharded,
    Shard,
    SourceFacts,
    check_arguments,
    dealing,
    even_counts,
    find_shards,
    joined_sizes,
    named_compression,
    new_names,
    parts_of,
    source_facts,
    unpacked_facts,
    warn_of_mixing,
    write_part,
)
from anybatch.scale.engine import Engine, Given, Progress, Task
from anybatch.scale.jobs import PROCESS_BYTES, JobRun, file_bytes, walk_bytes
from anybatch.scale.manifest import Output, continued, job_key
from anybatch.scale.plain import plain, restored

# what an index takes per record, at the most in practice
_INDEX_BYTES = 2


def reshard(
    paths: Sequence[str],
    to: str,
    shards: int,
    *,
    engine: Engine,
    shuffle: bool = False,
    seed: int = 0,
    compression: str | None = None,
    name: str | None = None,
    on_corrupt: str = "raise",
    progress: Progress | None = None,
) -> Resharded:
    """Return what `records.reshard` returns, with the same files. A finished job is not done again."""
    check_arguments(shards, on_corrupt)
    sources, packed = find_shards(paths), named_compression(compression)
    files = new_names([shard.path for shard in sources], Path(to), shards, packed, name)
    options = {"files": files, "seed": seed if shuffle else None, "on_corrupt": on_corrupt, "packed": packed}
    output = Output(Path(to), job_key("reshard", options, [shard.path for shard in sources]))
    finished = output.finished()
    if finished is not None:
        return cast(Resharded, restored(Resharded, finished))
    output.refuse_existing(map(Path, files))
    warn_of_mixing([shard.path for shard in sources], files)
    with continued(output.folder) as journal:
        run = JobRun(engine, journal, progress)
        made = _Job(run, output.staged, seed if shuffle else None, on_corrupt, packed).files(sources, files)
        output.place(journal, [Path(file).name for file in files], plain(made))
    return made


@dataclass(frozen=True, slots=True)
class _Job:
    """One resharding, phase by phase."""

    run: JobRun
    staged: Path
    seed: int | None
    on_corrupt: str
    compression: str

    def files(self, shards: Sequence[Shard], files: list[str]) -> Resharded:
        """Make all files where they are staged; return what they will be."""
        examined = self._examined(shards)
        damaged = tuple(damage for source in examined for damage in source.damaged)
        if damaged and self.on_corrupt == "raise":
            raise CorruptRecord(*damaged[0])
        sizes = joined_sizes(source.sizes for source in examined)
        if not sizes.records:
            raise NothingToRead([shard.path for shard in shards])
        counts = even_counts(sizes.records, len(files))
        sources = self._unpacked(examined)
        staged = [str(self.staged / Path(file).name) for file in files]
        how = dealing(
            sources, sizes, seed=self.seed, on_corrupt=self.on_corrupt, compression=self.compression
        )
        source_bytes = sum(file_bytes(shard.path) for shard in shards)
        parts, records = parts_of(sources, staged, counts, self.seed), [source.records for source in sources]
        self._written(parts, how, records, source_bytes)
        return Resharded(tuple(files), tuple(counts), sizes.total_bytes, damaged)

    def _examined(self, shards: Sequence[Shard]) -> list[SourceFacts]:
        tasks = [_walk(number, shard, shard) for number, shard in enumerate(shards)]
        work = partial(source_facts, on_corrupt=self.on_corrupt)
        return self.run.values("examine", work, tasks, SourceFacts)

    def _unpacked(self, examined: list[SourceFacts]) -> list[SourceFacts]:
        """Return the sources with every compressed one as a plain file: parts are read from anywhere."""
        tasks = [
            _walk(number, source.shard, (source, self.staged / f"source-{number}"))
            for number, source in enumerate(examined)
            if source.shard.compression
        ]
        work = partial(_plain_source, on_corrupt=self.on_corrupt)
        done = self.run.values("unpack", work, tasks, SourceFacts)
        plain_ones = {task.number: facts for task, facts in zip(tasks, done, strict=True)}
        return [plain_ones.get(number, source) for number, source in enumerate(examined)]

    def _written(
        self, parts: Sequence[Part], how: Dealing, records: Sequence[int], source_bytes: int
    ) -> None:
        share, held = source_bytes // len(parts), PROCESS_BYTES + how.limit_bytes
        tasks = [
            Task(number, part, f"`{part.file}`", share, held + _INDEX_BYTES * _opened_records(part, records))
            for number, part in enumerate(parts)
        ]
        self.run.values("write", partial(write_part, dealing=how), tasks, int)


def _opened_records(part: Part, records: Sequence[int]) -> int:
    """Return how many records the sources of a part have, whose indexes it opens."""
    return sum(records[part.first_source : part.end_source])


def _walk(number: int, shard: Shard, given: Given) -> Task[Given]:
    size = file_bytes(shard.path)
    return Task(number, given, f"`{shard.path}`", size, walk_bytes(size, compressed=bool(shard.compression)))


def _plain_source(given: tuple[SourceFacts, Path], *, on_corrupt: str) -> SourceFacts:
    source, into = given
    return unpacked_facts(source, into, on_corrupt=on_corrupt)
