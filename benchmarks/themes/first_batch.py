"""The wait for the first batch of a shuffled epoch."""

from functools import partial

from benchmarks.registry import Case, Theme
from benchmarks.roster import contenders

EVERYBODY = contenders(
    "tf.data best, shuffled",
    "Grain, shuffled",
    "Grain ArrayRecord, threads",
    "tfrecord, shuffled",
    "anybatch shuffled",
    "anybatch window",
    "anybatch shuffled, first sight",
    "bare limit, one batch",
)
WITH_WEBDATASET = (*EVERYBODY[:4], *contenders("WebDataset, shuffled"), *EVERYBODY[4:])
OF_PROCESS = contenders(
    "tf.data best, shuffled", "Grain ArrayRecord, threads", "anybatch shuffled", "bare limit, one batch"
)

FirstBatch = partial(Case, measured="first_batch", check="before")

THEME = Theme(
    "first_batch",
    "The first batch of a shuffled epoch, page cache warm",
    (
        FirstBatch(
            "shards100",
            "100 shards of 100 floats and a label, batches of 512",
            "shards100",
            "records",
            EVERYBODY,
            work="first_batch",
            quick=False,
        ),
        FirstBatch(
            "images",
            "150 KB raw images and a label, batches of 64",
            "images",
            "records",
            WITH_WEBDATASET,
            batch=64,
            work="first_batch",
        ),
        FirstBatch(
            "process",
            "150 KB raw images, from the start of the process, imports included",
            "images",
            "records",
            OF_PROCESS,
            batch=64,
            work="first_batch_of_process",
            quick=False,
        ),
    ),
)
