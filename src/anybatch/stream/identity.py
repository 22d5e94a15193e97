"""What a cache or a checkpoint was made from: files, features and functions, as one hash."""

import functools
import hashlib
import os
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from anybatch import __version__
from anybatch.records import RecordSet
from anybatch.stream.cache_folder import FORMAT
from anybatch.stream.contents import contents_of
from anybatch.stream.hashes import Hasher, parts_of
from anybatch.stream.lifted import every_stage
from anybatch.stream.limits import LimitMemory, Prefetch
from anybatch.stream.stage import Stage


def fingerprint_of(stage: Stage) -> str:
    """Return the hash of everything that decides what a stage yields; `Unstable` if there is none."""
    versions = (FORMAT, __version__, sys.implementation.cache_tag)
    return Hasher().digest((versions, _Described(stage))).hex()


def name_of(stage: Stage) -> str:
    """Return a short name for a pipeline, which stays when its files change or its functions do."""
    texts: list[str] = []
    for one in every_stage(stage):
        texts.append(one.described())
        record_set = getattr(one, "record_set", None)
        if isinstance(record_set, RecordSet):
            texts += [str(Path(shard.path).absolute()) for shard in record_set.shards]
    return hashlib.sha256("\n".join(texts).encode(errors="surrogateescape")).hexdigest()[:16]


def identity_of(stage: Stage) -> str:
    """Return what a stream reads and what its functions do: a text for people, with a hash in it.

    Equal ones go on with each other's checkpoints: files may be moved, memory and working ahead changed, and
    libraries be of another version. A function counts by its code, or by its name where it cannot be looked
    into; code is that of one version of Python.
    """
    data, hasher, code = contents_of(stage), Hasher(versions=False), hashlib.sha256()
    for one in every_stage(stage):
        if not isinstance(one, LimitMemory | Prefetch):
            code.update(one.described().encode(errors="surrogatepass"))
            for function in _functions_of(one):
                code.update(_done_by(function, hasher))
    tag = sys.implementation.cache_tag
    return f"{data.told} ({data.digest}), operations and functions ({code.hexdigest()[:16]}, {tag})"


def _functions_of(stage: Stage) -> Iterator[Any]:
    if is_dataclass(stage):
        yield from filter(callable, (getattr(stage, field.name) for field in fields(stage)))


def _done_by(function: Any, hasher: Hasher) -> bytes:
    """Return a hash of a function's code, not of what it finds in closures and globals.

    The time of a start or the name of a run may be among that, and a restart must not be refused for it.
    """
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return getattr(function, "__qualname__", type(function).__qualname__).encode()
    return hasher.digest(code)


class _Described:
    """A stage, by what it says of itself and not by its code, which is the library's."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage


@parts_of(_Described)
def _stage(hasher: Hasher, described: _Described) -> list[bytes]:
    stage = described.stage
    while isinstance(stage, LimitMemory | Prefetch):
        stage = stage.parent
    if not is_dataclass(stage):
        raise hasher.unstable(f"a stage of type {type(stage).__name__}")
    # where a cache below lies is no part of what it holds
    settings = [field.name for field in fields(stage) if field.compare and field.name != "path"]
    name = stage.described()
    values = [hasher.digest(_marked(getattr(stage, setting)), name) for setting in settings]
    return [type(stage).__name__.encode(), *values]


def _marked(value: Any) -> Any:
    if isinstance(value, Stage):
        return _Described(value)
    return tuple(_marked(one) for one in value) if isinstance(value, tuple) else value


@parts_of(RecordSet)
def _record_set(hasher: Hasher, record_set: RecordSet) -> list[bytes]:
    files = []
    for shard in record_set.shards:
        found = os.stat(shard.path)  # noqa: PTH116 - there may be ten thousand of them
        files.append((str(Path(shard.path).absolute()), shard.compression, found.st_size, found.st_mtime_ns))
    features = None if record_set.features is None else dict(record_set.features)
    return hasher.all([tuple(files), features, record_set.on_corrupt, record_set.ledger.allowed])
