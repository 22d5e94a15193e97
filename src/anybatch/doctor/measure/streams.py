"""What a stream already says: which files it reads, and what it does with their order."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from anybatch.errors import AnybatchError
from anybatch.stream import Stream
from anybatch.stream.batch import Batch
from anybatch.stream.filter import Filter
from anybatch.stream.map import Mapped
from anybatch.stream.read import Records
from anybatch.stream.shuffle import Shuffle
from anybatch.stream.stage import Operation, Stage
from anybatch.stream.windows import WindowShuffle

_OF_USERS = (Mapped, Filter)


class NoRecordFiles(AnybatchError, TypeError):
    """Something to diagnose that is not made of record files."""

    def __init__(self, given: str) -> None:
        super().__init__(given)
        self.given = given

    def __str__(self) -> str:
        return f"{self.given} reads no record files; diagnose takes paths, or a stream made by ab.read(...)"


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """The files of a stream, and its own batch and shuffle."""

    files: list[str]
    batch_size: int | None
    shuffled: bool
    changed: bool
    """A function of the user sees the records."""
    drop_remainder: bool


def stream_facts(stream: Stream) -> StreamFacts:
    """Return what the stages of a stream say."""
    stages = list(_stages(stream._stage))  # noqa: SLF001 - the stages are what a stream is
    sources = [stage for stage in stages if isinstance(stage, Records)]
    if not sources:
        raise NoRecordFiles(repr(stream))
    return StreamFacts(
        [shard.path for shard in sources[0].record_set.shards],
        next((stage.size for stage in stages if isinstance(stage, Batch)), None),
        any(isinstance(stage, Shuffle | WindowShuffle) for stage in stages),
        any(isinstance(stage, _OF_USERS) for stage in stages),
        any(isinstance(stage, Batch) and stage.drop_remainder for stage in stages),
    )


def rebatched(stream: Stream, size: int | None) -> Stream:
    """Return the stream with batches of another size, wherever in it they are made."""
    return stream if size is None else Stream(_with_batches(stream._stage, size))  # noqa: SLF001 - as above


def _with_batches(stage: Stage, size: int) -> Stage:
    if isinstance(stage, Batch):
        return stage if stage.size == size else replace(stage, size=size)
    if not isinstance(stage, Operation):
        return stage
    parent = _with_batches(stage.parent, size)
    return stage if parent is stage.parent else replace(stage, parent=parent)


def _stages(stage: Stage) -> Iterator[Stage]:
    yield stage
    while isinstance(stage, Operation):
        stage = stage.parent
        yield stage
