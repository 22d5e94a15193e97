"""Write the records of a data set in another format: `python -m benchmarks.convert tar floats FOLDER`.

From the same columns that the TFRecord shards were made of, so that nothing needs to be parsed.
"""

import argparse
import io
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import DATASETS, Dataset, Written
from benchmarks.digest import Columns
from benchmarks.forms import FORMS, folder_of
from benchmarks.make import chunks, shard_sizes
from benchmarks.wire import examples

Write = Callable[[Path, Iterable[Columns]], None]


def main() -> None:
    """Write the format that the command line names; it appears whole or not at all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.convert", description=__doc__)
    parser.add_argument("form", choices=sorted(FORMS))
    parser.add_argument("dataset", choices=sorted(DATASETS))
    parser.add_argument("folder", type=Path, help="where the TFRecord shards lie")
    chosen = parser.parse_args()
    convert(chosen.form, DATASETS[chosen.dataset], Written.load(chosen.folder))


def convert(form: str, dataset: Dataset, written: Written) -> None:
    """Write all shards beside their final place, then rename the folder."""
    final, write = folder_of(form, written), WRITERS[form]
    print(f"writing {final}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix=f".{final.name}-", dir=final.parent) as unfinished:
        folder = Path(unfinished) / final.name
        folder.mkdir()
        sizes = shard_sizes(int(written.truth["records"]), dataset.shards)
        for shard, (original, rows) in enumerate(zip(written.shards, sizes, strict=True)):
            write(folder / (Path(original).stem + FORMS[form]), chunks(dataset, shard, rows))
        folder.rename(final)


def write_array_record(path: Path, batches: Iterable[Columns]) -> None:
    """Write the same messages, each a group of its own, as Grain's guide advises for random access."""
    module: Any = import_module("array_record.python.array_record_module")
    writer = module.ArrayRecordWriter(str(path), "group_size:1")
    for columns in batches:
        for message in examples(columns):
            writer.write(message)
    writer.close()


def write_tar(path: Path, batches: Iterable[Columns]) -> None:
    """Write one file per value: `000000001.image.npy`, `000000001.label.cls`."""
    number = 0
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for columns in batches:
            for row in rows_of(columns):
                add_row(archive, f"{number:09d}", row)
                number += 1


def rows_of(columns: Columns) -> Iterator[Mapping[str, Any]]:
    """Yield the records of dense columns one by one."""
    for values in zip(*columns.values(), strict=True):  # type: ignore[arg-type]
        yield dict(zip(columns, values, strict=True))


def add_row(archive: tarfile.TarFile, key: str, row: Mapping[str, Any]) -> None:
    """Add the files of one record, which its key holds together."""
    for name, value in row.items():
        if value.ndim:
            add_file(archive, f"{key}.{name}.npy", as_npy(value))
        else:
            add_file(archive, f"{key}.{name}.cls", str(value).encode())


def add_file(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add one file."""
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def as_npy(value: "np.ndarray[Any, Any]") -> bytes:
    """Return an array as a file in NumPy's own format."""
    file = io.BytesIO()
    np.save(file, value)
    return file.getvalue()


WRITERS: Mapping[str, Write] = {"arrayrecord": write_array_record, "tar": write_tar}


if __name__ == "__main__":
    main()
