"""Jobs: a task per shard on some engine, with every result in a journal, so that a second start continues."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anybatch.handover import Journal, Json
from anybatch.records import Overview, ShardReport
from anybatch.records import index_shards as index_with
from anybatch.records import verify as verify_with
from anybatch.scale.engine import Engine, Given, Made, Progress, Task
from anybatch.scale.manifest import continued, folder_without_output, job_key
from anybatch.scale.plain import plain, restored

PROCESS_BYTES = 192 << 20
"""What a worker holds before it has begun: interpreter, NumPy, Ray."""

_WINDOW_BYTES = 16 << 20
# a compressed record is held whole while it is checked, and the core refuses larger ones
_PACKED_RECORD_BYTES = 256 << 20
# an index has at most 192 bytes per 128 records, and these 2,048 at least; while it is kept it exists twice
_INDEX_SHARE = 5


def walk_bytes(file_bytes: int, *, compressed: bool = False) -> int:
    """Return the most memory that one walk over a shard takes, its index included."""
    largest = _PACKED_RECORD_BYTES if compressed else 0
    return PROCESS_BYTES + _WINDOW_BYTES + largest + file_bytes // _INDEX_SHARE


@dataclass(frozen=True, slots=True)
class JobRun:
    """One start of a job; what earlier starts have finished is in the journal."""

    engine: Engine
    journal: Journal
    progress: Progress | None = None

    def values(
        self, phase: str, work: Callable[[Given], Made], tasks: Sequence[Task[Given]], made: Any
    ) -> list[Made]:
        """Return the value of every task of a phase, in order; `made` is the type of the values."""
        values: dict[int, Made] = self._known(phase, made)
        self._tell(sum(task.file_bytes for task in tasks if task.number in values))
        left = [task for task in tasks if task.number not in values]
        with closing(self.engine.run(work, left)) as running:
            for task, value in running:
                self.journal.add({"phase": phase, "task": task.number, "value": plain(value)})
                values[task.number] = value
                self._tell(task.file_bytes)
        return [values[task.number] for task in tasks]

    def _known(self, phase: str, made: Any) -> dict[int, Any]:
        entries = [entry for entry in self.journal.entries() if entry["phase"] == phase]
        return {entry["task"]: restored(made, entry["value"]) for entry in entries}

    def _tell(self, more: int) -> None:
        if self.progress is not None:
            self.progress(more)


@dataclass(frozen=True, slots=True)
class FileJob:
    """Work on each of some files that leaves nothing but indexes and a small value of a known type."""

    engine: Engine
    name: str
    made: Any
    options: Json = field(default_factory=dict)
    held_bytes: int = 0
    """What it holds beside a walk over the file."""
    progress: Progress | None = None

    def each(self, make: Callable[[Given], Made], given: Iterable[Given]) -> Iterator[Made]:
        """Yield `make(file)` for all files in order: an `Each` as `records` and `doctor` take it."""
        files: list[Any] = list(given)
        tasks = [self._task(number, file) for number, file in enumerate(files)]
        with continued(folder_without_output(job_key(self.name, self.options, files))) as journal:
            done = JobRun(self.engine, journal, self.progress).values(self.name, make, tasks, self.made)
        yield from done

    def _task(self, number: int, file: str) -> Task[Any]:
        size = file_bytes(file)
        # how a file is packed is found out where it is read
        needed = walk_bytes(size, compressed=file.endswith((".gz", ".zlib"))) + min(size, self.held_bytes)
        return Task(number, file, f"`{file}`", size, needed)


def verify(
    files: Sequence[str], *, engine: Engine, trust_index: bool = False, progress: Progress | None = None
) -> Overview:
    """Return what `records.verify` returns, each file checked by a task."""
    job = FileJob(engine, "verify", ShardReport, {"trust_index": trust_index}, progress=progress)
    return verify_with(files, trust_index=trust_index, each=job.each)


def index_shards(
    files: Sequence[str], *, engine: Engine, force: bool = False, progress: Progress | None = None
) -> Overview:
    """Return what `records.index_shards` returns, each file indexed by a task."""
    job = FileJob(engine, "index", ShardReport, {"force": force}, progress=progress)
    return index_with(files, force=force, each=job.each)


def file_bytes(file: str) -> int:
    """Return the size of a file, and 0 of what cannot be read: its task will say why."""
    try:
        return Path(file).stat().st_size
    except OSError:
        return 0
