"""Repair as a job: each shard by a task, all copies in their places at once."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from anybatch.records import Repaired, Shard, find_shards, repair_shard, sidecar_beside, target_names
from anybatch.scale.engine import Engine, Progress, Task
from anybatch.scale.jobs import JobRun, file_bytes, walk_bytes
from anybatch.scale.manifest import Output, continued, job_key
from anybatch.scale.plain import plain, restored

# each byte is examined, copied, and examined again
_PASSES = 3


def repair(
    files: Sequence[str],
    to: str,
    *,
    engine: Engine,
    only_damaged: bool = False,
    progress: Progress | None = None,
) -> list[Repaired]:
    """Return what `records.repair` returns, with the same files. A finished job is not done again."""
    shards, folder = find_shards(files), Path(to)
    targets = target_names([shard.path for shard in shards], folder)
    output = Output(folder, job_key("repair", {"only_damaged": only_damaged}, files))
    finished = output.finished()
    if finished is not None:
        return list(restored(tuple[Repaired, ...], finished))
    output.refuse_existing(targets)
    with continued(output.folder) as journal:
        work = partial(_repaired, staged=output.staged, only_damaged=only_damaged)
        made = JobRun(engine, journal, progress).values("repair", work, _tasks(shards), Repaired)
        placed = [_moved(one, folder) for one in made]
        output.place(journal, [name for one in placed for name in _names(one)], plain(placed))
    return placed


def _tasks(shards: Sequence[Shard]) -> list[Task[Shard]]:
    return [_task(number, shard) for number, shard in enumerate(shards)]


def _task(number: int, shard: Shard) -> Task[Shard]:
    size = file_bytes(shard.path)
    needed = walk_bytes(size, compressed=bool(shard.compression))
    return Task(number, shard, f"`{shard.path}`", _PASSES * size, needed)


def _repaired(shard: Shard, *, staged: Path, only_damaged: bool) -> Repaired:
    return repair_shard(shard, staged / Path(shard.path).name, only_damaged=only_damaged)


def _moved(made: Repaired, to: Path) -> Repaired:
    def there(file: str | None) -> str | None:
        return None if file is None else str(to / Path(file).name)

    return replace(made, file=there(made.file), quarantine=there(made.quarantine), ledger=there(made.ledger))


def _names(made: Repaired) -> Iterator[str]:
    """Yield the names of what a repaired shard has become, its index included."""
    for file in (made.file, made.quarantine, made.ledger):
        if file is not None:
            yield Path(file).name
    if made.file is not None and made.records:
        yield sidecar_beside(made.file).name
