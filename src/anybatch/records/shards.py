"""From what a user names to the shards it means."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import Any, TypeAlias

from anybatch import _native
from anybatch.errors import IsAFolder, NoFiles, NotRecords

OnePath: TypeAlias = str | bytes | os.PathLike[str]
Paths: TypeAlias = OnePath | Iterable[OnePath]

_COMPRESSIONS = {"": "", "none": "", "gzip": "GZIP", "zlib": "ZLIB"}


@dataclass(frozen=True, slots=True)
class Shard:
    """One record file and how it is packed: "", "GZIP" or "ZLIB"."""

    path: str
    compression: str


def find_shards(paths: Paths, compression: str | None = "auto") -> tuple[Shard, ...]:
    """Return the shards that paths, globs or a list of them name: lists in their order, globs sorted."""
    packed = None if compression == "auto" else named_compression(compression)
    return tuple(_shard(path, packed) for path in find_files(paths))


def find_files(paths: Paths) -> list[str]:
    """Return the files that are meant, at least one."""
    several = [paths] if isinstance(paths, str | bytes | os.PathLike) else _listed(paths)
    if not several:
        raise NoFiles(NoFiles.NONE_NAMED)
    return [file for path in several for file in _matching(_text(path))]


def _listed(paths: Any) -> list[Any]:
    if not isinstance(paths, Iterable):
        raise TypeError(f"the files are {paths!r}; name them by a path, a glob or a list of those")
    return list(paths)


def _text(path: Any) -> str:
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(f"one of the files is {path!r}; name it by a path or a glob")
    # bytes are what a file system calls its files
    return os.fsdecode(path)


def named_compression(name: str | None) -> str:
    """Return a compression by the name TensorFlow gives it.

    >>> named_compression("gzip"), named_compression(None)
    ('GZIP', '')
    """
    found = _COMPRESSIONS.get("" if name is None else name.lower())
    if found is None:
        raise ValueError(f"compression is {name!r}; it can be 'auto', None, 'GZIP' or 'ZLIB'")
    return found


def _matching(path: str) -> list[str]:
    if not path:
        # to Path it would be the folder one is in; a shell makes it of a variable that is not set
        raise NoFiles(path)
    if Path(path).is_dir():
        raise IsAFolder(path)
    # a file may well be called "a[1].tfrecord"
    if os.path.lexists(path) or not has_magic(path):
        return [path]
    # Path.glob would change what is found: it drops a leading "./" and follows no "**" in a link
    found = sorted(file for file in glob(path, recursive=True) if not Path(file).is_dir())  # noqa: PTH207
    if not found:
        raise NoFiles(path)
    return found


def _shard(path: str, packed: str | None) -> Shard:
    if Path(path).is_fifo():
        # opening it would wait for somebody to write
        raise NotRecords(path, "it is a pipe, which cannot be read twice")
    try:
        return Shard(path, _native.detect_compression(path) if packed is None else packed)
    except FileNotFoundError:
        raise NoFiles(path) from None
