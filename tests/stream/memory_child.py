"""One pipeline under one cap, in a process of its own: prints what it held at most above what it held before.

Called with the folder of the data, the cap in bytes and the name of a pipeline.
"""

import json
import sys
import threading
import time
from importlib import import_module
from pathlib import Path

import numpy as np

import anybatch as ab
from anybatch.memory import held

IMAGES = {"image": ab.Raw("uint8", (512, 512, 3)), "label": ab.Numbers("int64")}
SMALL = {"x": ab.Raw("uint8", (700,)), "label": ab.Numbers("int64")}
SKEWED = {"text": ab.Bytes(), "label": ab.Numbers("int64")}


def as_floats(columns):
    return {**columns, "image": columns["image"].astype(np.float32)}


def slowly(columns):
    time.sleep(0.01)
    return columns


def images(folder):
    return ab.read(f"{folder}/images-*.tfrecord", IMAGES)


def skewed(folder):
    return ab.read(f"{folder}/skewed-*.tfrecord", SKEWED)


def packed(folder):
    return ab.read(f"{folder}/packed-*.tfrecord", SKEWED)


def small(folder):
    return ab.read(f"{folder}/small-*.tfrecord", SMALL)


def beyond_cache(data):
    """Return records as if the page cache could hold none of them: they are swept up ahead."""
    import_module("anybatch.stream.read").cacheable_bytes = lambda: 0
    return data


def cached(data):
    return data.map(unchanged, batched=True).cache()


def unchanged(columns):
    return columns


GROWING = {
    "once": lambda f: small(f).take(2_000).shuffle(seed=1).batch(64).prefetch(4).repeat(50),
    "50 times": lambda f: small(f).shuffle(seed=1).batch(64).prefetch(4),
    "cached once": lambda f: cached(small(f).take(2_000)).shuffle(seed=1).batch(64).prefetch(4).repeat(50),
    "cached 50 times": lambda f: cached(small(f)).shuffle(seed=1).batch(64).prefetch(4),
}
"""The same number of records in all: all different, or the same ones again and again."""

PIPELINES = {
    "in order": lambda f: images(f).batch(4),
    "shuffled": lambda f: images(f).shuffle(seed=1).batch(4),
    "floats": lambda f: images(f).shuffle(seed=1).map(as_floats, batched=True).batch(2),
    "floats of batches": lambda f: images(f).batch(2).map(as_floats),
    "prefetched": lambda f: images(f).shuffle(seed=1).batch(2).prefetch(50),
    "cached": lambda f: images(f).cache().shuffle(seed=1).batch(2).repeat(2),
    "skewed": lambda f: skewed(f).shuffle(seed=1).batch(8),
    "skewed in order": lambda f: skewed(f).map(slowly, batched=True).batch(3),
    "skewed windows": lambda f: packed(f).shuffle(seed=1, window="8MiB").batch(4),
    "mixed": lambda f: ab.mix([skewed(f), skewed(f).shuffle(seed=2)], [1, 2]).batch(4),
    "mixed images": lambda f: ab.mix([images(f), images(f).shuffle(seed=2), images(f)], seed=3).batch(9),
    "mixed batches": lambda f: ab.mix([images(f).batch(6), images(f).shuffle(seed=2).batch(6)], seed=3),
    "filtered": lambda f: images(f).filter(lambda record: record["label"] % 3).batch(3),
    "swept up": lambda f: beyond_cache(small(f)).shuffle(seed=1).batch(64),
    "swept up apart": lambda f: beyond_cache(images(f)).shuffle(seed=1).batch(4),
    "parts": lambda f: images(f).shuffle(seed=1).batch(512),
}


def consumed(name, stream):
    """Go through a stream as a consumer who lets go of each element; some take their time."""
    seen = 0
    elements = (value for value, _ in stream.parts(4)) if name == "parts" else iter(stream)
    while (element := next(elements, None)) is not None:
        seen += len(element["label"])
        del element
        if seen % 7 == 0:
            time.sleep(0.002)
    return seen


def main():
    folder, cap_bytes, name = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    stream = (PIPELINES | GROWING)[name](folder).limit_memory(cap_bytes)
    # what is made once, such as threads and imports, is not the stream's
    next(stream.parts(4) if name == "parts" else iter(stream))
    # by looking often: the kernel's own high-water mark has the pages of mapped files in it
    before_bytes, peaks, ended = held().counted_bytes, [0], threading.Event()

    def look():
        while not ended.wait(0.001):
            peaks[0] = max(peaks[0], held().counted_bytes)

    looking = threading.Thread(target=look)
    looking.start()
    seen = consumed(name, stream)
    ended.set()
    looking.join()
    told = {"peak_bytes": peaks[0] - before_bytes, "process_bytes": peaks[0], "seen": seen}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
