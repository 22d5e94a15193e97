"""Write one data set: `python -m benchmarks.make floats benchmarks/.data --quick`."""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import DATASETS, MANIFEST, Dataset, folder_of
from benchmarks.digest import Columns, Digest
from benchmarks.wire import examples

CHUNK_BYTES = 32 << 20


def main() -> None:
    """Write the data set that the command line names, unless it is there."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.make", description=__doc__)
    parser.add_argument("name", choices=sorted(DATASETS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="the small size")
    chosen = parser.parse_args()
    make(DATASETS[chosen.name], chosen.folder, quick=chosen.quick)


def make(dataset: Dataset, data_folder: Path, *, quick: bool) -> None:
    """Write all shards beside their final place, then rename the folder."""
    final = folder_of(dataset, data_folder, quick=quick)
    final.parent.mkdir(parents=True, exist_ok=True)
    print(f"writing {final}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix=f".{final.name}-", dir=final.parent) as unfinished:
        folder = Path(unfinished) / final.name
        folder.mkdir()
        write_shards(dataset, dataset.count(quick), folder)
        publish(folder, final)


def publish(folder: Path, final: Path) -> None:
    """Let the folder appear, unless another process was faster."""
    try:
        folder.rename(final)
    except OSError:
        if not (final / MANIFEST).exists():
            raise


def write_shards(dataset: Dataset, records: int, folder: Path) -> None:
    """Write the shards and the manifest, which holds the digest of what went in."""
    tf: Any = import_module("tensorflow")
    digest, names = Digest(), []
    for shard, rows in enumerate(shard_sizes(records, dataset.shards)):
        names.append(f"{dataset.name}-{shard:05d}-of-{dataset.shards:05d}.tfrecord")
        with tf.io.TFRecordWriter(str(folder / names[-1])) as writer:
            for columns in chunks(dataset, shard, rows):
                digest.add(columns)
                check_first(tf, columns)
                for message in examples(columns):
                    writer.write(message)
    manifest = {"shards": names, "truth": digest.as_json()}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1))


def chunks(dataset: Dataset, shard: int, rows: int) -> Iterator[Columns]:
    """Yield the shard's columns a bounded number of bytes at a time, the same in every run."""
    rng = np.random.default_rng([1, shard])
    row_bytes = sum(8 * max(1, int(np.prod(field.shape))) for field in dataset.fields)
    step = max(1, CHUNK_BYTES // row_bytes)
    for start in range(0, rows, step):
        yield dataset.columns(rng, min(step, rows - start))


def shard_sizes(records: int, shards: int) -> list[int]:
    """Return sizes that differ by one at most."""
    return [records * (shard + 1) // shards - records * shard // shards for shard in range(shards)]


def check_first(tf: Any, columns: Columns) -> None:
    """Refuse to write what TensorFlow itself would have written differently."""
    message = next(examples(columns))
    theirs = tf.train.Example.FromString(message).SerializeToString(deterministic=True)
    if theirs != message:
        raise AssertionError(f"TensorFlow writes this record as {len(theirs)} other bytes: {theirs[:80]!r} …")


if __name__ == "__main__":
    main()
