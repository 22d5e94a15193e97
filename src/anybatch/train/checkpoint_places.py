"""Where in its data training stands, and how to go on from there."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from anybatch.handover import Json
from anybatch.stream import Stream, identity_of
from anybatch.train.checkpoint_passes import Arrays, KeptPasses, Passable, Skipping, counted
from anybatch.train.epochs import Epochs
from anybatch.train.inputs import WHOLE, Batches, Part, Source, StreamSource


class Placed(Source, Protocol):
    """Batches that know where they stand."""

    follows: bool
    """Whether a pass depends on those before it, so that there is a place even between two of them."""

    def exact(self, folder: Path) -> bool:
        """Return whether going on gives exactly the batches that were still to come; may try it there."""
        ...

    def first_part(self) -> Any:
        """Return a few rows of the first batch, which is still to come; None if there is no batch."""
        ...

    def place(self) -> Json:
        """Return where the pass stands, behind the last batch that was taken."""
        ...

    def kept(self, folder: Path) -> Arrays:
        """Return what belongs to that place and is too large for JSON; `folder` has room for it."""
        ...

    def go_on_from(self, place: Json, arrays: Arrays, folder: Path) -> None:
        """Let the next pass begin there."""
        ...

    def described(self) -> str:
        """Return what the data is, for people and for comparison."""
        ...


def placed(source: Source) -> Placed:
    """Return the same batches, able to be continued."""
    if isinstance(source, StreamSource):
        return _PlacedStream(source)
    return KeptPasses(source) if isinstance(source, Passable) else Skipping(source)


_FEW = 2


class _PlacedStream(StreamSource):
    """A stream goes on by its own state, wherever it was."""

    follows = False

    def __init__(self, source: StreamSource) -> None:
        super().__init__(source._stream, source._packed, source._opener)  # noqa: SLF001 - that source, and more
        # arrays in memory are shuffled by a seed that may have been drawn
        self._reseeded = source._packed is not None  # noqa: SLF001
        self._start: Json | None = None
        self._passes_before = 0
        self._parts: Any = None
        self._over = False
        """Whether the last pass came to its end: then the place is the beginning of the next one."""

    def open(self, epoch: int, most: int | None) -> Batches:
        start, self._start = self._start, None
        if start is not None:
            self._passes_before = start["epoch"] - epoch
        self._parts = parts = self._opened(most or WHOLE, epoch + self._passes_before)
        self._over = False
        if start is not None:
            parts.set_state(start)
        try:
            for value, last in parts:
                yield self._rest(value, last, parts)
            self._over = True
        finally:
            parts.close()

    def exact(self, folder: Path) -> bool:
        return True

    def first_part(self) -> Any:
        return self.first_rows(_FEW)

    def place(self) -> Json:
        place = self._parts.get_state()
        if self._over:
            place = {**place, "epoch": place["epoch"] + 1, "at": None}
        return {"stream": place, "seed": seed_of(self._stream)}

    def kept(self, folder: Path) -> Arrays:
        return {}

    def go_on_from(self, place: Json, arrays: Arrays, folder: Path) -> None:
        if self._reseeded and place["seed"] is not None:
            self._stream = with_seed(self._stream, place["seed"])
        self._start = place["stream"]

    def described(self) -> str:
        stream = with_seed(self._stream, 0) if self._reseeded else self._stream
        return f"{identity_of(stream)}, {counted(self.num_batches)}"


class ContinuedEpochs(Epochs):
    """Epochs of which the first is already partly done."""

    def __init__(self, source: Source, steps: int | None, done: int) -> None:
        super().__init__(source, steps)
        self._done = done

    @property
    def begun(self) -> bool:
        return self._done > 0

    def batches(self, epoch: int, most: int | None) -> Iterator[Iterator[Part]]:
        """Yield the batches of one epoch that are still to come."""
        done, self._done = self._done, 0
        return self._batches(done, epoch, most)


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
