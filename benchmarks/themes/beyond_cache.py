"""Shuffled batches of more data than the page cache holds: everybody in a memory group of a third of it."""

from benchmarks.registry import Case, Theme
from benchmarks.roster import contenders

OURS = contenders("anybatch shuffled", "anybatch window", "bare limit, all cores")

THEME = Theme(
    "beyond_cache",
    "Shuffled batches in a memory group of a third of the data, checksums checked",
    (
        Case(
            "floats",
            "100 floats and a label",
            "floats_4m",
            "records",
            # four million records take Grain on ArrayRecord half an hour, and fewer would fit
            (*contenders("tf.data best, shuffled"), *OURS),
            cache="third",
            check="before",
            quick=False,
        ),
        Case(
            "images",
            "150 KB raw images and a label",
            "images_10k",
            "records",
            (*contenders("tf.data best, shuffled in 300", "Grain ArrayRecord, shuffled"), *OURS),
            batch=64,
            cache="third",
            check="before",
            quick=False,
        ),
    ),
)
