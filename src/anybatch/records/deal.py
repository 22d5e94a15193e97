"""Records from batches into files that take so many of them each."""

from collections.abc import Iterable, Iterator
from typing import cast

from anybatch._native import Batch, Writer
from anybatch.records.assemble import assemble
from anybatch.records.columns import BytesColumn
from anybatch.records.features import Bytes


class WrongCount(Exception):
    """There were more records, or fewer, than there were places for them."""


class Dealer:
    """Fills one writer after the other, each with as many records as its count says."""

    def __init__(self, writers: Iterator[Writer], counts: Iterable[int]) -> None:
        # counts first: a writer that gets nothing is left for whoever finishes them all
        self._places = zip((count for count in counts if count), writers, strict=False)
        self._room = 0
        self._writer: Writer | None = None

    def add(self, batch: Batch) -> None:
        """Write the records of a batch that was read as bytes."""
        values, (offsets,) = batch.columns[0]
        writer = self._with_room()
        if batch.rows <= self._room:
            writer.write_batch(values, offsets)
            self._room -= batch.rows
            return
        # only where a file ends within the batch do its records go one by one
        for record in cast(BytesColumn, assemble(Bytes(), batch.rows, batch.columns[0])):
            self._with_room().write(record)
            self._room -= 1

    def finish(self) -> None:
        """Make sure that every file has its records."""
        if self._room or next(self._places, None) is not None:
            raise WrongCount

    def _with_room(self) -> Writer:
        if not self._room:
            self._room, self._writer = next(self._places, (0, None))
        if self._writer is None:
            raise WrongCount
        return self._writer
