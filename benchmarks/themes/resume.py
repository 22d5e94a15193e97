"""Going on in the middle of a shuffled epoch."""

from functools import partial

from benchmarks.registry import Case, Contender, Theme
from benchmarks.roster import contenders

EVERYBODY = (
    Contender(
        "tf.data checkpoint",
        "resume_tf:checkpoint",
        "peer",
        "any_order",
        "with the shuffling buffer",
    ),
    Contender(
        "tf.data skip",
        "resume_tf:skip",
        "peer",
        "any_order",
        "makes what it skips; needs a seed",
        quick=False,
    ),
    Contender(
        "Grain, window",
        "grain_arrays:resumed_records",
        "peer",
        "any_order",
        "no checksums",
        "grain",
        quick=False,
    ),
    Contender(
        "Grain ArrayRecord",
        "grain_arrays:resumed",
        "peer",
        "any_order",
        "exactly shuffled; a format of its own",
        "grain",
        "arrayrecord",
    ),
    Contender("anybatch", "resume_ours:shuffled", "ours", "any_order", "exactly shuffled"),
    Contender(
        "anybatch window", "resume_ours:window", "ours", "any_order", 'shuffle(window="64MiB")', quick=False
    ),
    *contenders("bare limit, one batch"),
)

Resume = partial(Case, measured="resume", check="before")

THEME = Theme(
    "resume",
    "Going on in the middle of a shuffled epoch: describe, restore, next batch",
    (
        Resume(
            "shards100",
            "100 shards of 100 floats and a label, batches of 512",
            "shards100",
            "records",
            EVERYBODY,
            quick=False,
        ),
        Resume(
            "images",
            "150 KB raw images and a label, batches of 64",
            "images",
            "records",
            EVERYBODY,
            batch=64,
        ),
    ),
)
