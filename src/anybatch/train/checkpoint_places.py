"""Where in its data training stands, and how to go on from there."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any, Protocol

from anybatch.handover import Json
from anybatch.stream import Stream
from anybatch.train.epochs import Epochs
from anybatch.train.inputs import WHOLE, Batches, Part, Source, StreamSource


class Placed(Source, Protocol):
    """Batches that know where they stand."""

    exact: bool
    """Whether going on gives exactly the batches that were still to come."""

    def first_part(self) -> Any:
        """Return a few rows of the first batch, which is still to come; None if there is no batch."""
        ...

    def place(self) -> Json:
        """Return where the pass stands, behind the last batch that was taken."""
        ...

    def go_on_from(self, place: Json) -> None:
        """Let the next pass begin there."""
        ...

    def described(self) -> str:
        """Return what the data is, for people and for comparison."""
        ...


def placed(source: Source) -> Placed:
    """Return the same batches, able to be continued."""
    return _PlacedStream(source) if isinstance(source, StreamSource) else _Skipping(source)


_FEW = 2


class _PlacedStream(StreamSource):
    """A stream goes on by its own state, wherever it was."""

    exact = True

    def __init__(self, source: StreamSource) -> None:
        super().__init__(source._stream, source._packed, source._opener)  # noqa: SLF001 - that source, and more
        # arrays in memory are shuffled by a seed that may have been drawn
        self._reseeded = source._packed is not None  # noqa: SLF001
        self._start: Json | None = None
        self._passes_before = 0
        self._parts: Any = None

    def open(self, epoch: int, most: int | None) -> Batches:
        start, self._start = self._start, None
        if start is not None:
            self._passes_before = start["epoch"] - epoch
        self._parts = parts = self._opener(self._stream, most or WHOLE, epoch=epoch + self._passes_before)
        if start is not None:
            parts.set_state(start)
        try:
            for value, last in parts:
                yield self._rest(value, last, parts)
        finally:
            parts.close()

    def first_part(self) -> Any:
        return self.first_rows(_FEW)

    def place(self) -> Json:
        return {"stream": self._parts.get_state(), "seed": seed_of(self._stream)}

    def go_on_from(self, place: Json) -> None:
        if self._reseeded and place["seed"] is not None:
            self._stream = with_seed(self._stream, place["seed"])
        self._start = place["stream"]

    def described(self) -> str:
        stream = with_seed(self._stream, 0) if self._reseeded else self._stream
        return f"{stream!r}, {_counted(self.num_batches)}"


class _Skipping:
    """Other data is read again up to the batch: right if it comes in the same order every time."""

    exact = False

    def __init__(self, source: Source) -> None:
        self._source = source
        self._start = 0
        self._taken = 0
        self._peeked: Batches | None = None

    @property
    def num_batches(self) -> int | None:
        return self._source.num_batches

    @property
    def batch_size(self) -> int | None:
        return self._source.batch_size

    @property
    def repeatable(self) -> bool:
        return self._source.repeatable

    def open(self, epoch: int, most: int | None) -> Batches:
        skipped, self._start = self._start, 0
        self._taken = skipped
        peeked, self._peeked = self._peeked, None
        for batch in islice(peeked or self._source.open(epoch, most), skipped, None):
            self._taken += 1
            yield batch

    def first_part(self) -> Any:
        batches = self._source.open(0, None)
        parts = [part for batch in islice(batches, 1) for part in batch]
        # data may be there to be read once only: what was looked at comes again
        self._peeked = chain([iter(parts)] if parts else [], batches)
        return parts[0][0] if parts else None

    def began(self) -> None:
        self._source.began()

    def ended(self) -> None:
        self._source.ended()

    def place(self) -> Json:
        return {"taken": self._taken}

    def go_on_from(self, place: Json) -> None:
        self._start = place["taken"]

    def described(self) -> str:
        return f"{type(self._source).__name__}, {_counted(self.num_batches)}"


class ContinuedEpochs(Epochs):
    """Epochs of which the first is already partly done."""

    def __init__(self, source: Source, steps: int | None, done: int) -> None:
        super().__init__(source, steps)
        self._done = done

    def batches(self, epoch: int, most: int | None) -> Iterator[Iterator[Part]]:
        """Yield the batches of one epoch that are still to come."""
        done, self._done = self._done, 0
        if self._steps is None or not done:
            yield from super().batches(epoch, most)
            return
        self._source.began()
        yield from self._some(self._steps - done, most)
        self._source.ended()


def _counted(batches: int | None) -> str:
    return "batches of unknown number" if batches is None else f"{batches:,} batches"


def seed_of(stream: Stream) -> int | None:
    """Return the seed by which arrays are shuffled; None if they are not."""
    shuffled = getattr(stream._stage, "parent", None)  # noqa: SLF001
    return getattr(shuffled, "seed", None)


def with_seed(stream: Stream, seed: int) -> Stream:
    """Return arrays shuffled by another seed; as they are if they are not shuffled."""
    batches: Any = stream._stage  # noqa: SLF001
    if getattr(batches.parent, "seed", None) is None:
        return stream
    return Stream(replace(batches, parent=replace(batches.parent, seed=seed)))
