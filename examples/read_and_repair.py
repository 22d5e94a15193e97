"""What anybatch does with a damaged data set, and how fast it reads, on data that the demo makes itself.

The first part of `make demo`. It works in a temporary folder for half a minute and leaves nothing.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import anybatch as ab

SHARDS = 4
PIXELS = 784
BATCH = 512
FEATURES = {"image": ab.Raw("uint8", (PIXELS,)), "label": ab.Numbers("int64")}

Hashes = NDArray[np.uint64]


def main() -> None:
    records = arguments().records
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="anybatch-demo-") as folder:
        os.chdir(folder)
        make_data(records)
        anybatch("inspect", "train/*.tfrecord")
        damage("train/digits-00000-of-00004.tfrecord")
        anybatch("verify", "train/*.tfrecord")
        tf = imported_tensorflow()
        show_what_tensorflow_does(tf, records)
        anybatch("repair", "train/*.tfrecord", "--to", "clean")
        race(tf, records - 1)
        os.chdir("/")
    headline(f"done in {time.perf_counter() - started:.0f} s; the folder is gone again")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000, help="how many records to make (200000)")
    return parser.parse_args()


def make_data(records: int) -> None:
    headline(f"{records:,} records of {PIXELS} raw bytes and a label, in {SHARDS} shards")
    rng = np.random.default_rng(7)
    classes = rng.integers(0, 200, (10, PIXELS), dtype=np.uint8)
    labels = rng.integers(0, 10, records)
    images = classes[labels] + rng.integers(0, 56, (records, PIXELS), dtype=np.uint8)
    made = Dealt(images, labels)
    ab.write("train/digits.tfrecord", made, shards=SHARDS)


class Dealt:
    """Records that are made when they are asked for; how many there are is known before."""

    def __init__(self, images: NDArray[np.uint8], labels: NDArray[np.int64]) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for image, label in zip(self.images, self.labels, strict=True):
            yield {"image": image.tobytes(), "label": label}


def damage(file: str) -> None:
    at = Path(file).stat().st_size * 3 // 4 + 123
    headline(f"one bit of {file} flips, at byte {at:,}, as on an ageing disk")
    with Path(file).open("r+b") as shard:
        shard.seek(at)
        byte = shard.read(1)[0]
        shard.seek(at)
        shard.write(bytes([byte ^ 4]))


def anybatch(*words: str) -> None:
    """Show a command and what it prints."""
    headline("$ anybatch " + " ".join(words))
    subprocess.run([sys.executable, "-m", "anybatch", *words], check=False)


def show_what_tensorflow_does(tf: Any, records: int) -> None:
    headline("the same files in tf.data.TFRecordDataset")
    count = 0
    try:
        for _ in tf.data.TFRecordDataset(shards_in("train")):
            count += 1
    except tf.errors.DataLossError as error:
        what = re.sub(r"{{.*?}}|\[Op.*", "", error.message).strip()
        print(f"DataLossError after {count:,} of {records:,} records: {what}")


def race(tf: Any, records: int) -> None:
    headline(f"the repaired records in batches of {BATCH}, from the page cache into arrays")
    contenders: dict[str, Callable[[], Iterable[Any]]] = {
        "tf.data, the usual pipeline": lambda: usual(tf),
        "tf.data, the best we know": lambda: best(tf),
        "anybatch": ours,
    }
    arrays = Arrays(records)
    rates, found = {}, {}
    for name, contender in contenders.items():
        rates[name] = records / arrays.seconds_to_fill(contender)
        found[name] = arrays.hashes()
        print(f"  {name:<28} {rates[name]:>12,.0f} records/s", flush=True)
    for name, hashes in found.items():
        assert np.array_equal(hashes, found["anybatch"]), f"{name} read other values"
    print("every pipeline has read the same values\n")
    show_bars(rates)


class Arrays:
    """Room for all records, filled by one pipeline after the other."""

    def __init__(self, records: int) -> None:
        self.images = np.ones((records, PIXELS), np.uint8)
        self.labels = np.ones(records, np.int64)

    def seconds_to_fill(self, contender: Callable[[], Iterable[Any]]) -> float:
        """Return the seconds of the best try; whoever is quick has several."""
        next(iter(contender()))  # whatever is done once is done now
        tries: list[float] = []
        while sum(tries) < 2:
            started = time.perf_counter()
            self._fill(contender())
            tries.append(time.perf_counter() - started)
        return min(tries)

    def _fill(self, batches: Iterable[Any]) -> None:
        at = 0
        for batch in batches:
            rows = slice(at, at + len(batch["label"]))
            self.images[rows], self.labels[rows] = batch["image"], batch["label"]
            at = rows.stop
        assert at == len(self.labels)

    def hashes(self) -> Hashes:
        """Return one number per record, in an order that does not depend on that of reading."""
        return np.sort(hashed(self.images, self.labels))


def hashed(images: NDArray[np.uint8], labels: NDArray[np.int64]) -> Hashes:
    weights = np.random.default_rng(1).integers(1, 2**63, PIXELS // 8 + 1, dtype=np.uint64) * 2 + 1
    return images.view(np.uint64) @ weights[1:] + labels.astype(np.uint64) * weights[0]


def ours() -> Iterable[Any]:
    return ab.read(shards_in("clean"), FEATURES).batch(BATCH)


def usual(tf: Any) -> Iterable[Any]:
    def parse(record: Any) -> Any:
        parsed = tf.io.parse_single_example(record, spec(tf))
        return {"image": tf.io.decode_raw(parsed["image"], tf.uint8), "label": parsed["label"]}

    return tf.data.TFRecordDataset(shards_in("clean")).map(parse).batch(BATCH).prefetch(tf.data.AUTOTUNE)


def best(tf: Any) -> Iterable[Any]:
    """Shards side by side, whole batches parsed at once on all cores, in any order."""

    def parse(batch: Any) -> Any:
        parsed = tf.io.parse_example(batch, spec(tf))
        return {"image": tf.io.decode_raw(parsed["image"], tf.uint8), "label": parsed["label"]}

    files = tf.data.Dataset.from_tensor_slices(shards_in("clean"))
    batches = files.interleave(
        lambda file: tf.data.TFRecordDataset(file, buffer_size=1 << 20).batch(BATCH),
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=False,
    )
    return batches.map(parse, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False).prefetch(
        tf.data.AUTOTUNE
    )


def spec(tf: Any) -> dict[str, Any]:
    return {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }


def show_bars(rates: dict[str, float]) -> None:
    for name, rate in rates.items():
        bar = "█" * max(1, round(60 * rate / max(rates.values())))
        ratio = "" if name == "anybatch" else f"  anybatch: {rates['anybatch'] / rate:,.1f} times as fast"
        print(f"  {name:<28} {bar}{ratio}")


def shards_in(folder: str) -> list[str]:
    return sorted(map(str, Path(folder).glob("*.tfrecord")))


def imported_tensorflow() -> Any:
    headline("importing TensorFlow")
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "TF_ENABLE_ONEDNN_OPTS": "0"}
    with errors_unheard():
        import tensorflow as tf

        tf.constant(0)
    return tf


@contextmanager
def errors_unheard() -> Iterator[None]:
    """Keep what native libraries print about missing GPUs away."""
    heard, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(heard, 2)
        os.close(heard)
        os.close(nowhere)


def headline(text: str) -> None:
    print(f"\n\033[1m==> {text}\033[0m" if sys.stdout.isatty() else f"\n==> {text}", flush=True)


if __name__ == "__main__":
    main()
