"""Records into TFRecord shards that appear whole or not at all."""

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sized
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np

from anybatch._native import Writer, encode_example
from anybatch.errors import BadFeature
from anybatch.records.columns import BytesColumn, RaggedColumn
from anybatch.records.record_set import RecordSet
from anybatch.records.shards import Shard, named_compression
from anybatch.records.whole_files import WholeFiles, refuse_existing

_SUFFIX = re.compile(r"(\.tfrecords?)?(\.gz|\.zlib)?$", re.IGNORECASE)


def write(
    path: str | os.PathLike[str],
    records: Iterable[Any],
    *,
    shards: int = 1,
    compression: str | None = None,
    overwrite: bool = False,
) -> list[str]:
    """Write records, mappings of arrays, bytes and numbers or bytes as they are; return the files.

    Reading the shards in the order of their names gives the records in the order they came. Floats
    are stored as float32, integers and bools as int64, as TFRecord has no others.
    """
    if shards < 1:
        raise ValueError(f"shards is {shards}; write at least 1")
    files = shard_names(os.fspath(path), shards)
    packed = named_compression(compression)
    encoded = map(encode, records)
    if shards > 1 and not isinstance(records, Sized):
        return _write_of_unknown_length(files, encoded, packed, overwrite=overwrite)
    counts = even_counts(len(records), shards) if isinstance(records, Sized) else [None]
    with new_shards(files, packed, overwrite=overwrite) as writers:
        for writer, count in zip(writers, counts, strict=True):
            _write_some(writer, encoded, count)
    return files


def shard_names(path: str, shards: int) -> list[str]:
    """Return what the files of a data set are called.

    >>> shard_names("out/train.tfrecord", 2)
    ['out/train-00000-of-00002.tfrecord', 'out/train-00001-of-00002.tfrecord']
    """
    if shards == 1:
        return [path]
    suffix = _SUFFIX.search(path)
    ending = (
        suffix.group() if suffix and suffix.group(1) else ".tfrecord" + (suffix.group() if suffix else "")
    )
    stem = path[: suffix.start()] if suffix else path
    return [f"{stem}-{number:05d}-of-{shards:05d}{ending}" for number in range(shards)]


def even_counts(records: int, shards: int) -> list[int]:
    """Return how many records go into each shard, one after the other, one more in the first few.

    >>> even_counts(7, 3)
    [3, 2, 2]
    """
    each, more = divmod(records, shards)
    return [each + (number < more) for number in range(shards)]


@contextmanager
def new_shards(files: list[str], compression: str, *, overwrite: bool = False) -> Iterator[Iterator[Writer]]:
    """Give writers of new files, which get their names when all of them are complete, and else vanish.

    Each is finished when the next is asked for: ten thousand shards are not ten thousand open files.
    """
    if not overwrite:
        refuse_existing(files)
    with WholeFiles(overwrite=overwrite) as whole:
        writers = shard_writers(whole, files, compression)
        yield writers
        finish_all(writers)


def shard_writers(whole: WholeFiles, files: Iterable[str], compression: str) -> Iterator[Writer]:
    """Yield a writer per file; each is finished when the next one is asked for."""
    for file in files:
        writer = Writer(whole.begin(file), compression)
        yield writer
        writer.finish()


def finish_all(writers: Iterator[Writer]) -> None:
    """Finish the last writer; files for which nobody has asked are there, and empty."""
    for _ in writers:
        pass


def encode(record: Any) -> bytes:
    """Return a record as the bytes of a `tf.train.Example`; bytes are taken as they are."""
    if isinstance(record, bytes | bytearray | memoryview):
        return bytes(record)
    if not isinstance(record, Mapping):
        raise TypeError(f"a record is a mapping from name to values, or bytes; got {type(record).__name__}")
    return encode_example([_encoded(name, value) for name, value in record.items()])


def _encoded(name: str, value: Any) -> tuple[str, str, bytes | list[bytes]]:
    if not isinstance(name, str):
        raise BadFeature(repr(name), f"its name is of type {type(name).__name__}; names are str")
    strings = _strings(value)
    if strings is not None:
        return name, "bytes", strings
    if isinstance(value, RaggedColumn):
        raise BadFeature(name, "it holds lists in lists, which a tf.train.Example cannot")
    if isinstance(value, list | tuple) and not value:
        # of what kind an empty list would be, nobody can tell
        return name, "nothing", b""
    array = np.asarray(value)
    if array.dtype.kind == "f":
        return name, "float", array.astype("<f4").tobytes()
    if array.dtype.kind in "iub":
        if array.dtype.kind == "u" and array.max(initial=0) > np.iinfo(np.int64).max:
            raise BadFeature(name, f"it holds {array.max()}, more than an int64 can")
        return name, "int64", array.astype("<i8").tobytes()
    kinds = "numbers, bools, bytes, str, and arrays or lists of one of them"
    raise BadFeature(name, f"it holds {_described(value, array)}; a record can hold {kinds}")


def _strings(value: Any) -> list[bytes] | None:
    """Return bytes values as a list of them, or None if the value is something else."""
    if isinstance(value, bytes | bytearray | memoryview):
        return [bytes(value)]
    if isinstance(value, str):
        return [value.encode()]
    if isinstance(value, BytesColumn):
        return value.to_list()
    if isinstance(value, np.ndarray) and value.dtype.kind in "OSU":
        # objects are what bytes values are read as, and so is an empty list of them
        value = value.reshape(-1).tolist()
    elif not isinstance(value, list | tuple) or not value:
        return None
    if not all(isinstance(one, bytes | str) for one in value):
        return None
    return [one.encode() if isinstance(one, str) else one for one in value]


def _described(value: Any, array: np.ndarray[Any, Any]) -> str:
    return type(value).__name__ if array.dtype.kind == "O" else f"values of type {array.dtype}"


def _write_some(writer: Writer, records: Iterator[bytes], count: int | None) -> None:
    written = 0
    while count is None or written < count:
        record = next(records, None)
        if record is None:
            return
        writer.write(record)
        written += 1


def _write_of_unknown_length(
    files: list[str], records: Iterator[bytes], packed: str, *, overwrite: bool
) -> list[str]:
    """Write everything once, count it, then deal it out: memory stays small and the order is kept."""
    with ExitStack() as stack:
        writers = stack.enter_context(new_shards(files, packed, overwrite=overwrite))
        folder = Path(files[0]).parent
        folder.mkdir(parents=True, exist_ok=True)
        spool = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix=".anybatch-", dir=folder)), "spool"
        )
        all_of_it = Writer(spool, "")
        _write_some(all_of_it, records, None)
        total = all_of_it.records
        all_of_it.finish()
        counts = even_counts(total, len(files))
        again = spooled(spool)
        for writer, count in zip(writers, counts, strict=True):
            _write_some(writer, again, count)
    return files


def spooled(path: Path) -> Iterator[bytes]:
    """Yield the records of one plain file, as they lie."""
    if path.stat().st_size:
        for column in RecordSet((Shard(str(path), ""),)).in_file_order(1024):
            yield from cast(BytesColumn, column)
