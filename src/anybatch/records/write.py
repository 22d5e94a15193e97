"""Records into TFRecord shards that appear whole or not at all."""

import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from anybatch._native import Writer, encode_example
from anybatch.errors import AnybatchWarning, BadFeature, FolderInTheWay
from anybatch.records.columns import BytesColumn, RaggedColumn
from anybatch.records.record_set import RecordSet
from anybatch.records.shards import Shard, named_compression
from anybatch.records.whole_files import WholeFiles, refuse_existing

_TEXT = (bytes, bytearray, memoryview, str)
_NUMBERED = re.compile(r"-\d{5}-of-\d{5}$")
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

    >>> import tempfile
    >>> import anybatch as ab
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = write(
    ...         f"{folder}/a.tfrecord", ({"x": [0.5, n], "name": f"{n}"} for n in range(10)), shards=2
    ...     )
    ...     print(*(Path(file).name for file in files))
    ...     len(ab.read(files))
    a-00000-of-00002.tfrecord a-00001-of-00002.tfrecord
    10
    """
    if shards < 1:
        raise ValueError(f"shards is {shards}; write at least 1")
    files = shard_names(os.fspath(path), shards)
    packed = named_compression(compression)
    _refuse_folders(files)
    if not overwrite:
        refuse_existing(files)
    if shards > 1:
        # whoever writes file by file names them, and a look into the folder for each would take long
        warn_of_other_sets(files)
    encoded = _all_encoded(records, os.fspath(path))
    with ExitStack() as stack:
        whole = stack.enter_context(WholeFiles(overwrite=overwrite))
        total = _length(records) if shards > 1 else 0
        if total is None:
            # written once, counted, then dealt out: memory stays small and the order is kept
            spool = stack.enter_context(whole.scratch_folder(Path(files[0]))) / "spool"
            total, encoded = _spool(encoded, spool), spooled(spool)
        _deal(encoded, even_counts(total, shards), shard_writers(whole, files, packed))
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


def warn_of_other_sets(files: list[str]) -> None:
    """Say where shards of the same name but of another number lie already."""
    folder = Path(files[0]).parent
    ours = {Path(file).name for file in files}
    name = _name_of_set(Path(files[0]).name)
    others = sorted(folder.iterdir()) if folder.is_dir() else []
    for other in others:
        if other.name not in ours and _name_of_set(other.name) == name:
            warn_of_reading_twice(str(other), "is of another set of shards of this name")
            return


def warn_of_reading_twice(file: str, what: str) -> None:
    """Say that a file lies where whoever reads the folder reads its records together with the new ones."""
    text = (
        f"`{file}` {what}, and a glob reads it together with the new ones; remove it, or use another folder"
    )
    warnings.warn(text, AnybatchWarning, stacklevel=4)


def _name_of_set(file: str) -> tuple[str, str]:
    """Return what all shards of a set are called, however many there are, and how they end.

    >>> _name_of_set("a-00003-of-00004.tfrecord"), _name_of_set("a-7.tfrecord.gz")
    (('a', '.tfrecord'), ('a-7', '.tfrecord.gz'))
    """
    ending = cast(re.Match[str], _SUFFIX.search(file)).group()
    return _NUMBERED.sub("", file.removesuffix(ending)), ending


def even_counts(records: int, shards: int) -> list[int]:
    """Return how many records go into each shard, one after the other, one more in the first few.

    >>> even_counts(7, 3)
    [3, 2, 2]
    """
    each, more = divmod(records, shards)
    return [each + (number < more) for number in range(shards)]


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


def _refuse_folders(files: Iterable[str]) -> None:
    for file in files:
        if file.endswith(os.sep) or Path(file).is_dir():
            raise FolderInTheWay(file)


def _all_encoded(records: Iterable[Any], path: str) -> Iterator[bytes]:
    """Yield every record as bytes; what is wrong with one is said of its number, counted from 0."""
    for number, record in enumerate(records):
        try:
            yield encode(record)
        except BadFeature as error:
            raise BadFeature(error.feature, error.problem, _where(number, path)) from None
        except TypeError as error:
            raise TypeError(f"{_where(number, path)}: {error}") from error


def _where(number: int, path: str) -> str:
    return f"record {number:,} for `{path}`"


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
    _utf8(name, name)
    if isinstance(value, RaggedColumn):
        raise BadFeature(name, "it holds lists in lists, which a tf.train.Example cannot")
    strings = _strings(name, value)
    if strings is not None:
        return name, "bytes", strings
    array = _array(name, value)
    if isinstance(value, list | tuple) and not array.size:
        # of what kind an empty list would be, nobody can tell
        return name, "nothing", b""
    outside = _outside_int64(value, array)
    if outside is not None:
        raise BadFeature(name, f"it holds {outside}, which no int64 can hold")
    if array.dtype.kind == "f":
        return name, "float", _float32(name, array).tobytes()
    if array.dtype.kind in "iub":
        return name, "int64", array.astype("<i8").tobytes()
    kinds = "numbers, bools, bytes, str, and arrays or lists of one of them"
    raise BadFeature(name, f"it holds {_described(value, array)}; a record can hold {kinds}")


def _strings(name: str, value: Any) -> list[bytes] | None:
    """Return bytes values as a list of them, or None if the value is something else."""
    if isinstance(value, BytesColumn):
        return value.to_list()
    if isinstance(value, _TEXT):
        value = [value]
    elif isinstance(value, np.ndarray) and value.dtype.kind in "OSU":
        # objects are what bytes values are read as, and so is an empty list of them
        value = value.reshape(-1).tolist()
    elif not isinstance(value, list | tuple) or not value:
        return None
    if not all(isinstance(one, _TEXT) for one in value):
        return None
    return [_utf8(name, one) if isinstance(one, str) else bytes(one) for one in value]


def _utf8(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        problem = f"{text!a} holds half of a surrogate pair, which UTF-8 has not; write bytes"
        raise BadFeature(name.encode("ascii", "backslashreplace").decode(), problem) from None


def _array(name: str, value: Any) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except ValueError:
        problem = "it holds lists of different lengths, which a tf.train.Example cannot"
        raise BadFeature(name, problem) from None


def _outside_int64(value: Any, array: NDArray[Any]) -> int | None:
    """Return an integer that is too large. NumPy makes floats or objects of a list with such a one."""
    low, high = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
    if array.dtype.kind == "u":
        largest = int(array.max(initial=0))
        return largest if largest > high else None
    if not isinstance(value, int | list | tuple) or not _may_be_too_large(array):
        return None
    given = list(np.asarray(value, dtype=object).flat)
    if not all(isinstance(one, int) for one in given):
        return None
    return next((one for one in given if not low <= one <= high), None)


def _may_be_too_large(array: NDArray[Any]) -> bool:
    return array.dtype.kind == "O" or (array.dtype.kind == "f" and bool((np.abs(array) >= 2.0**63).any()))


def _float32(name: str, array: NDArray[Any]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        stored = array.astype("<f4")
    if array.dtype.itemsize > stored.dtype.itemsize:
        lost = np.isinf(stored) & np.isfinite(array)
        if lost.any():
            raise BadFeature(name, f"it holds {array[lost].flat[0]}, which no float32 can hold")
    return stored


def _described(value: Any, array: NDArray[Any]) -> str:
    """Return what a value holds. Of a list NumPy would not tell: it makes text of a number beside text."""
    if isinstance(value, list | tuple):
        kinds = list(dict.fromkeys(type(one).__name__ for one in _leaves(value)))
        nested = any(isinstance(one, list | tuple) for one in value)
        return " and ".join(kinds) + (" in lists within one list" if nested else " in one list")
    return type(value).__name__ if array.dtype.kind == "O" else f"values of type {array.dtype}"


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for one in value:
            yield from _leaves(one)
    else:
        yield value


def _length(records: Iterable[Any]) -> int | None:
    """Return how many records there are, or None if only reading them tells."""
    try:
        return len(records)  # type: ignore[arg-type]
    except TypeError:
        return None


def _deal(records: Iterator[bytes], counts: list[int], writers: Iterator[Writer]) -> None:
    """Write so many records into each file, and into the last one all that are left."""
    for writer, count in zip(writers, [*counts[:-1], None], strict=True):
        _write_some(writer, records, count)
    finish_all(writers)


def _write_some(writer: Writer, records: Iterator[bytes], count: int | None) -> None:
    written = 0
    while count is None or written < count:
        record = next(records, None)
        if record is None:
            return
        writer.write(record)
        written += 1


def _spool(records: Iterator[bytes], path: Path) -> int:
    """Write all records into one plain file; return how many there are."""
    writer = Writer(path, "")
    _write_some(writer, records, None)
    total = writer.records
    writer.finish()
    return total


def spooled(path: Path) -> Iterator[bytes]:
    """Yield the records of one plain file, as they lie."""
    if path.stat().st_size:
        for column in RecordSet((Shard(str(path), ""),)).in_file_order(1024):
            yield from cast(BytesColumn, column)
