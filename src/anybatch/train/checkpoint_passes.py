"""Data that Keras reads for us: how a pass over it is taken up again."""

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from anybatch.handover import Json
from anybatch.train.inputs import Batches, Part, Source

Arrays = Mapping[str, NDArray[Any]]


class Pass(Iterator[Iterator[Part]], Protocol):
    """A pass over data that can be written down behind any batch, as arrays by name.

    What cannot be written down, for whatever reason, is an `OSError`; an iterator of other data that is to go
    on from it, a `ValueError`.
    """

    def kept(self, folder: Path) -> Arrays:
        """Return where it stands; `folder` has room for it."""
        ...

    def go_on_from(self, arrays: Arrays, folder: Path) -> None:
        """Stand where another one stood."""
        ...


@runtime_checkable
class Passable(Source, Protocol):
    """Data whose passes can be written down."""

    def begun(self) -> Pass:
        """Begin another pass."""
        ...


class Skipping:
    """Data that is read again up to the batch: right if it comes in the same order every time."""

    follows = False

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

    def exact(self, folder: Path) -> bool:
        return False

    def open(self, epoch: int, most: int | None) -> Batches:
        skipped, self._start = self._start, 0
        self._taken = skipped
        peeked, self._peeked = self._peeked, None
        for batch in islice(peeked or self._opened(epoch, most), skipped, None):
            self._taken += 1
            yield batch

    def _opened(self, epoch: int, most: int | None) -> Batches:
        return self._source.open(epoch, most)

    def first_part(self) -> Any:
        batches = self._opened(0, None)
        parts = [part for batch in islice(batches, 1) for part in batch]
        # data may be there to be read once only: what was looked at comes again
        self._peeked = chain([iter(parts)] if parts else [], batches)
        return parts[0][0] if parts else None

    def first_rows(self, most: int) -> Any:
        return self._source.first_rows(most)

    def began(self) -> None:
        self._source.began()

    def ended(self) -> None:
        self._source.ended()

    def place(self) -> Json:
        return {"taken": self._taken}

    def kept(self, folder: Path) -> Arrays:
        return {}

    def go_on_from(self, place: Json, arrays: Arrays, folder: Path) -> None:
        self._start = place["taken"]

    def described(self) -> str:
        told = getattr(self._source, "described", type(self._source).__name__)
        return f"{told}, {counted(self.num_batches)}"


class KeptPasses(Skipping):
    """Data whose passes are written down, where that turns out to be possible; else it is read again.

    Its random orders are counted by passes, so that there is a place even between two of them: the beginning
    of the next one. A pass that is over does not tell how many there were.
    """

    def __init__(self, source: Passable) -> None:
        super().__init__(source)
        self._passable = source
        self._pass: Pass | None = None
        self._waits = False
        """Whether a pass is begun of which nobody has read anything yet."""

    def exact(self, folder: Path) -> bool:
        try:
            self._begun().kept(folder)
        except OSError:
            return False
        self.follows = True
        return True

    def open(self, epoch: int, most: int | None) -> Batches:
        yield from super().open(epoch, most)
        self._pass = None

    def _opened(self, epoch: int, most: int | None) -> Batches:
        if not self._waits:
            self._pass = None
        opened = self._begun()
        self._waits = False
        return opened

    def first_part(self) -> Any:
        # the pass that is begun for it is the one that will be opened
        return self._passable.first_rows(1)

    def _begun(self) -> Pass:
        """Return the pass that is under way, or else the next one."""
        if self._pass is None:
            self._pass = self._passable.begun()
            self._waits = True
        return self._pass

    def place(self) -> Json:
        return {**super().place(), "kept": self.follows}

    def kept(self, folder: Path) -> Arrays:
        return self._begun().kept(folder) if self.follows else {}

    def go_on_from(self, place: Json, arrays: Arrays, folder: Path) -> None:
        if not place["kept"]:
            super().go_on_from(place, arrays, folder)
            return
        self._peeked = None
        self._pass = self._passable.begun()
        self._pass.go_on_from(arrays, folder)
        self._waits = True


def counted(batches: int | None) -> str:
    """Return how many batches there are, in words."""
    return "batches of unknown number" if batches is None else f"{batches:,} batches"
