"""The wait for the first batch of a shuffled epoch."""

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
)
WITH_WEBDATASET = (*EVERYBODY[:4], *contenders("WebDataset, shuffled"), *EVERYBODY[4:])
OF_PROCESS = contenders("tf.data best, shuffled", "Grain ArrayRecord, threads", "anybatch shuffled")

THEME = Theme(
    "first_batch",
    "The first batch of a shuffled epoch, page cache warm",
    (
        Case(
            "shards100",
            "100 shards of 100 floats and a label, batches of 512",
            "shards100",
            "records",
            EVERYBODY,
            measured="first_batch",
            check="before",
            work="first_batch",
            quick=False,
        ),
        Case(
            "images",
            "150 KB raw images and a label, batches of 64",
            "images",
            "records",
            WITH_WEBDATASET,
            batch=64,
            measured="first_batch",
            check="before",
            work="first_batch",
        ),
        Case(
            "process",
            "150 KB raw images, from the start of the process, imports included",
            "images",
            "records",
            OF_PROCESS,
            batch=64,
            measured="first_batch",
            check="before",
            work="first_batch_of_process",
        ),
    ),
)
