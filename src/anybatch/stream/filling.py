"""A cache while it is filled: in memory as long as it fits, then on disk."""

import errno
import shutil
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anybatch._native import masked_crc32c
from anybatch.errors import Damage
from anybatch.stream.buffers import Buffer
from anybatch.stream.cache_folder import FORMAT, Generation, NoRoomOnDisk
from anybatch.stream.chunk import Chunk
from anybatch.stream.layout import (
    CannotStore,
    Dense,
    Layout,
    agreed,
    buffers_of,
    columns_in,
    columns_of,
    layout_of,
    named_leaves,
    pieces,
    to_json,
)
from anybatch.stream.meters import Meter
from anybatch.stream.structure import Structure, mapped, row_count
from anybatch.stream.table import Numbers, Table, places

_LARGEST_BLOCK = 1 << 20
_SMALLEST_BLOCK = 1 << 14
_AT_A_TIME = 1 << 16
_SLOTS = "slots.bin"


@dataclass(frozen=True, slots=True)
class About:
    """What is known of a cache's content besides its rows; `mean_bytes` of 0: as many as here."""

    positions: int
    mean_bytes: int
    damages: list[Damage]


class Filling:
    """Rows as they come, each with the position it will be asked for by.

    `expected` is how many positions there will be, where that is known; `count` finds out. What is in memory
    counts in the meter; as soon as it is more than the meter's bound, everything goes on in a folder.
    """

    def __init__(
        self, meter: Meter, begin: Callable[[], Generation], expected: int | None, count: Callable[[], int]
    ) -> None:
        self._meter = meter
        self._expected = expected
        self._count = count
        self._storage = _Storage(begin)
        self._structure: Structure = None
        self._columns: list[_Filled] = []
        self._numbers = self._storage.new()
        self._renumbered = False
        self._bounds: tuple[Buffer, Buffer] | None = None
        self._slots: _Slots | None = None
        self._rows = 0
        self._batches = 0
        self.finished = False

    @property
    def elements(self) -> int:
        """How many rows, or batches, there are."""
        return self._rows if self._bounds is None else self._batches

    def add(self, chunk: Chunk, positions: Numbers) -> None:
        """Keep the rows of a chunk, or a whole batch."""
        columns, loose = columns_of(chunk.value)
        rows = _rows_of(columns) if chunk.whole else chunk.rows
        with self._storage.disk_may_be_full():
            if self._structure is None:
                self._begin(columns, chunk, rows)
            self._append(columns, loose=loose)
            self._numbers.append(chunk.numbers)
            if self._bounds is not None:
                for bounds, count in zip(self._bounds, (rows, len(chunk.numbers)), strict=True):
                    bounds.append(np.array([count]))
            else:
                self._place(positions)
        self._renumbered |= chunk.whole or not np.array_equal(chunk.numbers, positions)
        self._rows += rows
        self._batches += chunk.whole
        self._account()

    def go_to_disk(self) -> None:
        """Write everything there is into a folder, and go on there."""
        # every buffer holds one block back, and there may be hundreds of columns
        fair = self._meter.bound_bytes // 4 // max(1, len(self._storage.buffers))
        with self._storage.disk_may_be_full():
            generation = self._storage.go_to_disk(min(_LARGEST_BLOCK, max(_SMALLEST_BLOCK, fair)))
            if self._slots is not None and self._slots.memory_bytes:
                self._slots.move_to(generation.path)

    def finish(self, about: "About", fingerprint: str | None) -> Table:
        """Return all that was added. What lies on disk and has a fingerprint is there for others to use."""
        if self._bounds is None and self._rows < about.positions:
            # records that were left out at the very end
            self._slots = self._slots or self._new_slots(about.positions)
        generation = self._storage.generation
        if generation is None:
            self.finished = True
            return self._in_memory(about)
        with self._storage.disk_may_be_full():
            manifest, checks = self._described(about, fingerprint)
            table = generation.complete(manifest, checks)
            if fingerprint is None:
                generation.remove()
            else:
                generation.publish(manifest)
        self.finished = True
        self._meter.hold(-self._meter.held_bytes)
        return table

    def close(self) -> None:
        """Give up what was not finished."""
        if not self.finished:
            self._storage.abandon()
            self._meter.hold(-self._meter.held_bytes)

    def _begin(self, columns: Structure, chunk: Chunk, rows: int) -> None:
        self._structure = _shape_of(columns)
        self._columns = [
            _Filled(layout_of(column, name), self._storage) for name, column in named_leaves(columns)
        ]
        if chunk.whole:
            self._bounds = self._storage.new(offsets=True), self._storage.new(offsets=True)
        elif self._expected is not None:
            predicted = (chunk.nbytes // max(1, rows) + 16) * self._expected
            if predicted > self._meter.bound_bytes:
                self.go_to_disk()
            self._storage.check_room(predicted)

    def _append(self, columns: Structure, *, loose: bool) -> None:
        if _shape_of(columns) != self._structure:
            raise CannotStore("", "later records are made up of other columns than the first")
        # by name: others may have them in another order
        in_order = mapped(lambda _, column: column, self._structure, columns)
        for (name, column), filled in zip(named_leaves(in_order), self._columns, strict=True):
            filled.append(column, name, self._rows, loose=loose)

    def _place(self, positions: Numbers) -> None:
        in_line = np.array_equal(positions, np.arange(self._rows, self._rows + len(positions)))
        if self._slots is None and not in_line:
            self._slots = self._new_slots(self._count() if self._expected is None else self._expected)
        if self._slots is not None:
            self._slots.put(positions, self._rows)

    def _new_slots(self, positions: int) -> "_Slots":
        generation = self._storage.generation
        return _Slots(positions, self._rows, None if generation is None else generation.path)

    def _account(self) -> None:
        slots = self._slots.memory_bytes if self._slots is not None else 0
        self._meter.hold(self._storage.memory_bytes + slots - self._meter.held_bytes)
        self._meter.elements = self._rows
        if self._storage.generation is None and self._meter.held_bytes > self._meter.bound_bytes:
            self.go_to_disk()
            self._account()

    def _kept(self) -> dict[str, Buffer | None]:
        """Return the buffers besides the columns, as `places` calls them."""
        row_bounds, number_bounds = self._bounds or (None, None)
        numbers = self._numbers if self._renumbered else None
        return {"numbers": numbers, "row_bounds": row_bounds, "number_bounds": number_bounds}

    def _layouts(self) -> Structure:
        if self._structure is None:
            return ()
        layouts = iter([filled.layout for filled in self._columns])
        return mapped(lambda _: next(layouts), self._structure)

    def _row_bytes(self) -> int:
        total = sum(buffer.nbytes for filled in self._columns for buffer in filled.buffers)
        return total // max(1, self._rows)

    def _in_memory(self, about: "About") -> Table:
        row_bytes = self._row_bytes()
        buffers = [buffer.in_memory() for filled in self._columns for buffer in filled.buffers]
        special = {
            name: None if buffer is None else buffer.in_memory().view(np.int64)
            for name, buffer in self._kept().items()
        }
        slots = None if self._slots is None else self._slots.values
        table = Table(
            layouts=self._layouts(),
            columns=columns_in(self._layouts(), buffers, self._rows),
            rows=self._rows,
            positions=about.positions,
            row_bytes=row_bytes,
            mean_bytes=about.mean_bytes or row_bytes,
            slots=slots,
            damages=tuple(about.damages),
            memory_bytes=sum(one.nbytes for one in [*buffers, slots, *special.values()] if one is not None),
            **places(**special),
        )
        self._meter.hold(table.memory_bytes - self._meter.held_bytes)
        return table

    def _described(
        self, about: "About", fingerprint: str | None
    ) -> "tuple[dict[str, Any], list[array[int]]]":
        """Return the manifest of what lies in the folder, and the checksums of all its files, in order."""
        files, checks = self._storage.closed()
        names = {id(buffer): name for buffer, (name, _) in zip(self._storage.buffers, files, strict=True)}
        if self._slots is not None:
            name, n_bytes, of_slots = self._slots.closed(self._storage.block_bytes)
            files.append((name, n_bytes))
            checks.append(of_slots)
        manifest = {
            "format": FORMAT,
            "fingerprint": fingerprint,
            "structure": to_json(self._layouts()),
            "rows": self._rows,
            "positions": about.positions,
            "row_bytes": self._row_bytes(),
            "mean_bytes": about.mean_bytes or self._row_bytes(),
            "block_bytes": self._storage.block_bytes,
            "files": files,
            "columns": [names[id(buffer)] for filled in self._columns for buffer in filled.buffers],
            "slots": files[-1][0] if self._slots is not None else "",
            "damages": list(about.damages),
        }
        for what, buffer in self._kept().items():
            manifest[what] = "" if buffer is None else names[id(buffer)]
        return manifest, checks


class _Storage:
    """The buffers of a cache, all of them in memory or all of them in one folder."""

    def __init__(self, begin: Callable[[], Generation]) -> None:
        self.buffers: list[Buffer] = []
        self.generation: Generation | None = None
        self.block_bytes = 0
        self._begin = begin

    @property
    def memory_bytes(self) -> int:
        if self.generation is not None:
            return self.block_bytes * len(self.buffers)
        return sum(buffer.nbytes for buffer in self.buffers)

    def new(self, *, offsets: bool = False) -> Buffer:
        buffer = Buffer(offsets=offsets)
        self.buffers.append(buffer)
        if self.generation is not None:
            self._move(len(self.buffers) - 1)
        return buffer

    def go_to_disk(self, block_bytes: int) -> Generation:
        if self.generation is None:
            self.block_bytes = block_bytes
            self.generation = self._begin()
            for number in range(len(self.buffers)):
                self._move(number)
        return self.generation

    def check_room(self, needed: int) -> None:
        if self.generation is not None:
            self.generation.check_room(needed)

    def closed(self) -> "tuple[list[tuple[str, int]], list[array[int]]]":
        """Return every file's name and size, and its checksums, all of it written."""
        blocks = [buffer.in_file() for buffer in self.buffers]
        names = [_file_name(number) for number in range(len(blocks))]
        return [(name, one.nbytes) for name, one in zip(names, blocks, strict=True)], [
            one.checks for one in blocks
        ]

    def abandon(self) -> None:
        for buffer in self.buffers:
            buffer.abandon()
        if self.generation is not None:
            self.generation.remove()

    @contextmanager
    def disk_may_be_full(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            if problem.errno not in {errno.ENOSPC, errno.EDQUOT} or self.generation is None:
                raise
            held = sum(buffer.nbytes for buffer in self.buffers)
            free = shutil.disk_usage(self.generation.path).free
            raise NoRoomOnDisk(str(self.generation.folder), held + 1, free) from problem

    def _move(self, number: int) -> None:
        if self.generation is None:
            raise AssertionError("buffers move once there is a folder")
        self.buffers[number].move_to(self.generation.path / _file_name(number), self.block_bytes)


class _Filled:
    """One column so far."""

    def __init__(self, layout: Layout, storage: _Storage) -> None:
        self.layout = layout
        self._storage = storage
        self.buffers = [storage.new(offsets=offsets) for offsets in buffers_of(layout)]

    def append(self, column: Any, name: str, rows_before: int, *, loose: bool) -> None:
        layout = agreed(self.layout, column, name, loose=loose)
        if layout != self.layout:
            self._become_lists(layout, rows_before)
        for buffer, piece in zip(self.buffers, pieces(column, layout, name), strict=True):
            buffer.append(piece)

    def _become_lists(self, layout: Layout, rows: int) -> None:
        """Arrays that were of one length by chance are lists: their values lie there already."""
        if not isinstance(self.layout, Dense):
            raise AssertionError("what already is lists stays so")
        offsets, length = self._storage.new(offsets=True), self.layout.shape[0]
        for start in range(0, rows, _AT_A_TIME):
            offsets.append(np.full(min(_AT_A_TIME, rows - start), length))
        self.layout = layout
        self.buffers = [offsets, *self.buffers]


class _Slots:
    """One more than the row of every position, 0 for none; rows so far lie at their own positions."""

    def __init__(self, positions: int, rows: int, folder: Path | None) -> None:
        self.values: Numbers = (
            np.zeros(positions, np.int64) if folder is None else _new_file(folder, positions)
        )
        for start in range(0, rows, _AT_A_TIME):
            self.put(np.arange(start, min(rows, start + _AT_A_TIME)), start)

    @property
    def memory_bytes(self) -> int:
        return 0 if isinstance(self.values, np.memmap) else self.values.nbytes

    def put(self, positions: Numbers, first_row: int) -> None:
        self.values[positions] = np.arange(first_row + 1, first_row + len(positions) + 1)

    def move_to(self, folder: Path) -> None:
        in_file = _new_file(folder, len(self.values))
        in_file[:] = self.values
        self.values = in_file

    def closed(self, block_bytes: int) -> "tuple[str, int, array[int]]":
        """Return name, size and checksums of the file."""
        memory = self.values.view(np.uint8)
        starts = range(0, memory.nbytes, block_bytes)
        return (
            _SLOTS,
            memory.nbytes,
            array("I", [masked_crc32c(memory[at : at + block_bytes].data) for at in starts]),
        )


def _new_file(folder: Path, count: int) -> Numbers:
    """Return numbers in a new file, all 0: pages that are never written take no room."""
    return np.memmap(folder / _SLOTS, np.int64, "w+", shape=(count,))


def _file_name(number: int) -> str:
    return f"{number:04d}.bin"


def _shape_of(columns: Structure) -> Structure:
    return mapped(lambda _: "column", columns)


def _rows_of(columns: Structure) -> int:
    try:
        return row_count(columns)
    except (TypeError, ValueError) as problem:
        raise CannotStore("a batch", f"{problem}; put cache before batch") from problem
