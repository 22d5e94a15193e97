"""The Rust core as Python sees it. Whole batches cross this border, never single records of a hot path."""

import os
from collections.abc import Sequence
from typing import Self, TypeAlias, final

from typing_extensions import Buffer as AnyBuffer

__all__ = [
    "Batch",
    "Buffer",
    "Index",
    "Order",
    "Reader",
    "Scan",
    "Schema",
    "Survey",
    "Writer",
    "detect_compression",
    "encode_example",
    "masked_crc32c",
]

_Path: TypeAlias = str | os.PathLike[str]
_Field: TypeAlias = tuple[str, str, str, str, int, bytes | list[bytes] | None, bool]

@final
class Buffer:
    """64-byte-aligned writable memory, given back for the next batch once nobody holds it."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

Column: TypeAlias = tuple[Buffer, list[Buffer]]
"""Values, then int64 offsets, outermost first: record → steps, item → values, value → bytes."""

def masked_crc32c(data: AnyBuffer) -> int: ...
def detect_compression(path: _Path) -> str: ...
def encode_example(features: Sequence[tuple[str, str, bytes | list[bytes]]]) -> bytes: ...

@final
class Index:
    """Where the records of one shard are, what of it is damaged, and which file that was."""

    @staticmethod
    def load(path: _Path, compression_name: str, sidecar: _Path) -> Index | None: ...
    def save(self, sidecar: _Path) -> None: ...
    @property
    def records(self) -> int: ...
    @property
    def damaged(self) -> list[tuple[int, int, str]]: ...
    @property
    def bad_records(self) -> int: ...
    @property
    def verified(self) -> bool: ...
    @property
    def compression(self) -> str: ...
    @property
    def file_bytes(self) -> int: ...
    @property
    def stream_bytes(self) -> int: ...
    def extents(self, start: int, stop: int) -> Buffer: ...
    def good_runs(self) -> list[tuple[int, int, int]]: ...

@final
class Scan:
    """A walk over one shard, a slice at a time."""

    def __new__(cls, path: _Path, compression_name: str, *, check_data: bool = False) -> Self: ...
    @property
    def file_bytes(self) -> int: ...
    @property
    def bytes_done(self) -> int: ...
    def advance(self, budget_bytes: int) -> bool: ...
    def survey(self, budget_bytes: int, survey: Survey) -> bool: ...
    def finish(self) -> Index: ...

@final
class Schema:
    """What to take out of each record: (key, level, form, dtype, count, default, required) per column."""

    def __new__(cls, fields: Sequence[_Field]) -> Self: ...

@final
class Batch:
    """Decoded records, and what was met on the way that could not be read."""

    @property
    def rows(self) -> int: ...
    @property
    def columns(self) -> list[Column]: ...
    @property
    def numbers(self) -> Buffer: ...
    @property
    def positions(self) -> Buffer: ...
    @property
    def asked(self) -> int: ...
    @property
    def ends_batch(self) -> bool: ...
    @property
    def end(self) -> int: ...
    @property
    def damaged(self) -> list[tuple[int, int, int, str]]: ...

_Operation: TypeAlias = tuple[str, Sequence[int]]

@final
class Order:
    """The order of so many records after some operations: ("shuffle", [seed, epoch]) and so on."""

    def __new__(cls, records: int, operations: Sequence[_Operation]) -> Self: ...
    def __len__(self) -> int: ...
    def records(self, start: int, stop: int) -> Buffer: ...

@final
class Reader:
    """Batches made ahead on native threads: by record number, or by walking the shards."""

    def __new__(
        cls,
        shards: Sequence[tuple[_Path, str, Index | None]],
        schema: Schema | None,
        *,
        batch: int,
        most: int,
        drop_remainder: bool,
        on_corrupt: str,
        order: Sequence[_Operation] | None,
        start: int,
        threads: int,
        depth: int,
        limit_bytes: int,
        most_depth: int | None = None,
        cached_bytes: int | None = None,
        swept_bytes: int | None = None,
    ) -> Self: ...
    def stats(self) -> tuple[int, int, int, int]: ...
    def next(self) -> Batch | None: ...
    def learnt(self) -> list[tuple[int, Index]]: ...

@final
class Survey:
    """What the features of many records have in common."""

    def __new__(cls) -> Self: ...
    def add(self, values: Buffer, offsets: Buffer) -> None: ...
    @property
    def records(self) -> int: ...
    @property
    def malformed(self) -> int: ...
    def features(self) -> list[tuple[str, str, dict[str, object]]]: ...

@final
class Writer:
    """A new record file, which must not exist yet."""

    def __new__(cls, path: _Path, compression_name: str) -> Self: ...
    @property
    def records(self) -> int: ...
    def write(self, record: bytes) -> None: ...
    def write_batch(self, values: Buffer, offsets: Buffer) -> None: ...
    def finish(self) -> None: ...
