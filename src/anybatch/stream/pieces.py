"""Rows that lie in several pieces, of which any can be taken."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anybatch.records import Column
from anybatch.stream.structure import (
    Loose,
    Structure,
    alike,
    as_columns,
    by_name,
    bytes_of,
    dealt,
    end_to_end,
    mapped,
)


class Pieces:
    """Columns as they came, in pieces of some size: put together, all of them would be there twice."""

    def __init__(self, piece_bytes: int) -> None:
        self._piece_bytes = piece_bytes
        self._pieces: list[Structure] = []
        self._rows: list[int] = []
        self._loose = False
        self._waiting: list[Structure] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0

    def add(self, value: Structure, rows: int) -> None:
        """Keep some more rows."""
        self._loose |= isinstance(value, Loose)
        columns = as_columns(value)
        self._waiting.append(columns)
        self._waiting_rows += rows
        self._waiting_bytes += bytes_of(columns)
        if self._waiting_bytes >= self._piece_bytes:
            self._close_piece()

    def closed(self) -> "Rows":
        """Return all rows."""
        if self._waiting:
            self._close_piece()
        columns = by_name(lambda several, _: alike(several, loose=self._loose), self._pieces)
        return Rows(columns, np.cumsum([0, *self._rows]))

    def _close_piece(self) -> None:
        several = self._waiting
        one = several[0] if len(several) == 1 else by_name(self._joined, several)
        self._pieces.append(one)
        self._rows.append(self._waiting_rows)
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0

    def _joined(self, columns: Sequence[Any], name: str) -> Column:
        return end_to_end(alike(columns, loose=self._loose), name)


class Rows:
    """All rows of some pieces: every column is a list of columns, one per piece."""

    def __init__(self, columns: Structure, bounds: NDArray[np.int64]) -> None:
        self._columns = columns
        self._bounds = bounds

    def at(self, rows: NDArray[np.int64]) -> Structure:
        """Return a copy of some rows, in the order given."""
        piece_of = np.searchsorted(self._bounds, rows, side="right") - 1
        by_piece = np.argsort(piece_of, kind="stable")
        which, firsts = np.unique(piece_of[by_piece], return_index=True)
        places = np.split(by_piece, firsts[1:])
        taken = [rows[place] - self._bounds[piece] for piece, place in zip(which, places, strict=True)]
        return mapped(
            lambda columns: dealt([columns[piece] for piece in which], taken, places), self._columns
        )
