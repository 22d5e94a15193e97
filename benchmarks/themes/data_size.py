"""Memory while one epoch is read in random order, of data that grows 50-fold."""

from benchmarks.registry import Case, Contender, Theme
from benchmarks.roster import contenders

EVERYBODY = (
    Contender("arrays in memory", "hold_all:arrays", "peer", "any_order", "everything loaded first"),
    Contender(
        "tf.data cache", "hold_all:cached", "peer", "any_order", "cache(), then shuffle(10_000)", quick=False
    ),
    *contenders("tf.data best, shuffled", "anybatch shuffled", "bare limit, by batches"),
)

THEME = Theme(
    "data_size",
    "Memory while reading 150 KB raw images in random order, batches of 64",
    tuple(
        Case(
            f"times_{times}",
            title,
            dataset,
            "records",
            EVERYBODY,
            batch=64,
            measured="growth",
            quick=times != 10,
        )
        for times, title, dataset in (
            (1, "once the data", "images_1x"),
            (10, "10 times the data", "images_10x"),
            (50, "50 times the data", "images"),
        )
    ),
)
