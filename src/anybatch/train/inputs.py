"""Where batches come from: each one a series of parts, so that none has to exist whole."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias

from anybatch.stream import Stream
from anybatch.stream.batch import Batch

Part: TypeAlias = tuple[Any, bool]
"""Columns, and whether they are the last of their batch."""

Batches: TypeAlias = Iterator[Iterator[Part]]


class Parts(Protocol):
    """The parts of one batch after the other, able to be continued."""

    def __next__(self) -> Part: ...
    def __iter__(self) -> Iterator[Part]: ...
    def get_state(self) -> dict[str, Any]: ...
    def set_state(self, state: Any) -> None: ...
    def close(self) -> None: ...


class Opener(Protocol):
    """Begins a pass over a stream in some epoch, in parts of at most so many rows."""

    def __call__(self, stream: Stream, most: int, /, *, epoch: int) -> Parts: ...


WHOLE = 2**62
"""More rows than any batch has."""


class Source(Protocol):
    """Batches, epoch by epoch. What is not known is None."""

    @property
    def num_batches(self) -> int | None: ...
    @property
    def batch_size(self) -> int | None: ...
    @property
    def repeatable(self) -> bool:
        """Whether an epoch can be opened more often than it is trained on."""
        ...

    def open(self, epoch: int, most: int | None) -> Batches:
        """Yield the batches of an epoch; those that come in parts, in parts of at most `most` rows."""
        ...

    def first_rows(self, most: int) -> Any:
        """Return the first rows: so many, or a whole batch where it does not come in parts; None: no rows.

        To be asked of what is repeatable only: nothing that is trained on is missing then.
        """
        ...

    def began(self) -> None: ...
    def ended(self) -> None: ...


def whole(batch: Any) -> Iterator[Part]:
    """Return a batch that is there already, as its only part."""
    return iter([(batch, True)])


class FirstBatch:
    """The first batch of another source, again and again: what probes are made with."""

    def __init__(self, batch: Any, rows: int) -> None:
        self._batch = batch
        self.batch_size: int | None = rows
        self.num_batches: int | None = 1
        self.repeatable = True

    def open(self, epoch: int, most: int | None) -> Batches:
        yield whole(self._batch)

    def first_rows(self, most: int) -> Any:
        return self._batch

    def began(self) -> None:
        """Nothing begins."""

    def ended(self) -> None:
        """Nothing ends."""


class StreamSource:
    """The batches of a stream, of which only parts are ever asked for; `opener`: whose rows those have."""

    repeatable = True

    def __init__(
        self, stream: Stream, packed: Callable[[Any], Any] | None = None, opener: Opener = Stream.parts
    ) -> None:
        self._stream = stream
        self._packed = packed
        self._opener = opener
        self.swept_bytes = 0
        """What may be held to read ahead in sweeps: nothing, until it is known what training needs."""

    def dealt(self, deal: Callable[[Stream], tuple[Stream, Opener]]) -> "StreamSource":
        """Return some rows of every batch: `deal` says of which stream, and how they are read."""
        stream, opener = deal(self._stream)
        return StreamSource(stream, self._packed, opener)

    def first_rows(self, most: int) -> Any:
        """Return the first rows of all, whoever gets them; None if there are none."""
        parts = self._stream.parts(most, swept_bytes=0)
        try:
            found = next((value for value, _ in parts if value is not None), None)
        finally:
            parts.close()
        return None if found is None else self._given(found)

    @property
    def num_batches(self) -> int | None:
        try:
            return len(self._stream)
        except TypeError:
            return None

    @property
    def batch_size(self) -> int | None:
        return batch_size_of(self._stream)

    def open(self, epoch: int, most: int | None) -> Batches:
        parts = self._opened(most or WHOLE, epoch)
        try:
            for value, last in parts:
                yield self._rest(value, last, parts)
        finally:
            parts.close()

    def _opened(self, most: int, epoch: int) -> Parts:
        if self._opener is Stream.parts:
            return self._stream.parts(most, epoch=epoch, swept_bytes=self.swept_bytes)
        return self._opener(self._stream, most, epoch=epoch)

    def _rest(self, value: Any, last: bool, parts: Iterator[Part]) -> Iterator[Part]:
        """Yield the parts of one batch; those of which every record is damaged are left out."""
        if value is not None:
            yield self._given(value), last
        while not last:
            value, last = next(parts)
            if value is not None:
                yield self._given(value), last

    def _given(self, columns: Any) -> Any:
        return columns if self._packed is None else self._packed(columns)

    def began(self) -> None:
        """Streams count epochs themselves."""

    def ended(self) -> None:
        """Streams count epochs themselves."""


def batch_size_of(stream: Stream) -> int | None:
    """Return how many records `batch` was told to put together; None where that says nothing."""
    stage: Any = stream._stage  # noqa: SLF001
    while stage is not None:
        if isinstance(stage, Batch):
            return int(stage.size)
        stage = getattr(stage, "parent", None)
    return None
