"""What the README's second table asks: whom to name, and what to say of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.job import FINISHED
from benchmarks.measures import MEASURES, difference_in_words, rate_in_words

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """One line of the second table: a case of a theme, whom to name, and what to say of each."""

    title: str
    theme: str
    case: str
    others: Mapping[str, str]  # the contender, and what it is called here
    ours: str
    cell: Callable[[Row], str]


def value_in_words(row: Row) -> str:
    """Return what the case measures."""
    return MEASURES[row["measured"]].words(row["value"], row["unit"])


def mebibytes(row: Row) -> str:
    """Return what the case measures, which is MiB."""
    return f"{value_in_words(row)} MiB"


def per_second(row: Row) -> str:
    """Return how many records pass in a second."""
    return f"{value_in_words(row)} records/s"


def off_by(row: Row) -> str:
    """Return how far weights are off, and how many updates there were."""
    return f"{difference_in_words(row['weights_difference'])} ({row['updates']:.0f} updates)"


def end(row: Row) -> str:
    """Return how training ended, and how good the weights are if it did well."""
    if row["ended"] != FINISHED:
        return str(row["ended"])
    off = difference_in_words(row["weights_difference"])
    pace = rate_in_words(row["rate"], row["unit"])
    if row.get("later_rate"):
        then = rate_in_words(row["later_rate"], row["unit"])
        pace += f" samples/s ({then} behind the first batch, which took {row['first_batch_seconds']:.1f} s)"
    else:
        pace += " samples/s"
    return f"{FINISHED}, {pace}, weights off by {off}"


COMPARABLE = (value_in_words, mebibytes, per_second)
"""What is told in one number, of which one can be so many times another."""

WITHIN_A_BUFFER = {
    "Grain, shuffled": "Grain, window of 10,000",
    "tfrecord, shuffled": "tfrecord",
    "WebDataset, shuffled": "WebDataset",
}
TF_AND_GRAIN = {"tf.data best, shuffled": "tf.data", "Grain ArrayRecord, threads": "Grain on ArrayRecord"}
RESUMERS = {
    "tf.data checkpoint": "tf.data",
    "tf.data skip": "its skip()",
    "Grain ArrayRecord": "Grain on ArrayRecord",
    "Grain, window": "Grain, window of 10,000",
}
HOLDERS = {
    "arrays in memory": "arrays",
    "tf.data cache": "cache()",
    "tf.data best, shuffled": "shuffle(10_000)",
}
ADDERS = {
    "articles' loop": "gradients added up by hand",
    "Keras accumulation": "Keras' accumulation",
    "whole, permuted": "the whole batch, its samples in another order",
}
TRAINERS = {
    "model.fit": "model.fit",
    "model.fit, except: halve": "except: halve",
    "model.fit, accumulation": "accumulation by hand, 8 x 64",
}
GRAIN = {"Grain ArrayRecord, shuffled": "Grain on ArrayRecord"}
SHUFFLED = {"tf.data best, shuffled": "tf.data, shuffle(10_000)", **GRAIN, **WITHIN_A_BUFFER}
CORES = {"tf.data best, fixed": "tf.data", "Grain ArrayRecord": "Grain on ArrayRecord"}
FITTERS = {"model.fit, tf.data usual": "model.fit, usual tf.data", "model.fit, tf.data best": "best tf.data"}
RESIZERS = {"tf.data resize": "tf.data, resize", "tf.data antialias": "antialias=True, as ours"}
QUESTIONS = (
    Question("100 floats, shuffled", "shuffled", "floats", SHUFFLED, "anybatch shuffled", per_second),
    Question("784 bytes, shuffled", "shuffled", "bytes784", SHUFFLED, "anybatch shuffled", per_second),
    Question("150 KB images, shuffled", "shuffled", "images", SHUFFLED, "anybatch shuffled", per_second),
    Question(
        "100 floats, shuffled, through `to_tf()`",
        "shuffled",
        "floats",
        SHUFFLED,
        "anybatch shuffled, to_tf",
        per_second,
    ),
    Question(
        "page cache cold, 100 floats", "shuffled", "floats_cold", SHUFFLED, "anybatch shuffled", per_second
    ),
    Question(
        "page cache cold, 150 KB images", "shuffled", "images_cold", SHUFFLED, "anybatch shuffled", per_second
    ),
    Question("512 px JPEG files to 224 px", "jpeg", "to_224", RESIZERS, "anybatch images", per_second),
    Question(
        "a third of the data fits into memory, 100 floats",
        "beyond_cache",
        "floats",
        SHUFFLED,
        "anybatch shuffled",
        per_second,
    ),
    Question(
        'the same with `shuffle(window="64MiB")`',
        "beyond_cache",
        "floats",
        SHUFFLED,
        "anybatch window",
        per_second,
    ),
    Question(
        "a third of the data fits into memory, 150 KB images",
        "beyond_cache",
        "images",
        {"tf.data best, shuffled in 300": "tf.data, shuffle(300)", **GRAIN},
        "anybatch shuffled",
        per_second,
    ),
    Question("one core, 100 floats in file order", "cores", "floats_1", CORES, "anybatch", per_second),
    Question("two cores, 100 floats in file order", "cores", "floats_2", CORES, "anybatch", per_second),
    Question("one core, 150 KB images in file order", "cores", "images_1", CORES, "anybatch", per_second),
    Question("two cores, 150 KB images in file order", "cores", "images_2", CORES, "anybatch", per_second),
    Question("an epoch of training, 100 floats", "training", "table", FITTERS, "ab.fit", per_second),
    Question(
        "first shuffled batch of 64 images",
        "first_batch",
        "images",
        TF_AND_GRAIN | WITHIN_A_BUFFER,
        "anybatch shuffled",
        value_in_words,
    ),
    Question(
        "the same from the start of the process",
        "first_batch",
        "process",
        TF_AND_GRAIN,
        "anybatch shuffled",
        value_in_words,
    ),
    Question(
        "going on in mid-epoch",
        "resume",
        "images",
        RESUMERS,
        "anybatch",
        value_in_words,
    ),
    Question(
        "memory above the imports, 15 MB of images",
        "data_size",
        "times_1",
        HOLDERS,
        "anybatch shuffled",
        mebibytes,
    ),
    Question(
        "memory above the imports, 150 MB of images",
        "data_size",
        "times_10",
        HOLDERS,
        "anybatch shuffled",
        mebibytes,
    ),
    Question(
        "memory above the imports, 750 MB of images",
        "data_size",
        "times_50",
        HOLDERS,
        "anybatch shuffled",
        mebibytes,
    ),
    Question("weights off by, plain parts", "exactness", "plain", ADDERS, "ab.fit", off_by),
    Question("weights off by, clipping, short batch", "exactness", "usual", ADDERS, "ab.fit", off_by),
    Question("address space too small", "survival", "address_space", TRAINERS, "ab.fit", end),
    Question("container too small", "survival", "group", TRAINERS, "ab.fit", end),
    Question("killed, restarted", "survival", "group", {"model.fit": "model.fit"}, "anybatch run", end),
)
