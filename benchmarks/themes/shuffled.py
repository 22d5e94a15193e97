"""Whole batches in random order: exactly shuffled by us, through a buffer of 10,000 by others."""

from benchmarks.registry import Case, Theme
from benchmarks.roster import contenders

EVERYBODY = contenders(
    "tf.data best, shuffled",
    "Grain, shuffled",
    "Grain ArrayRecord, shuffled",
    "tfrecord, shuffled",
    "anybatch shuffled",
    "anybatch shuffled, to_tf",
    "anybatch window",
    "bare limit, all cores",
)
WITH_WEBDATASET = (*EVERYBODY[:4], *contenders("WebDataset, shuffled"), *EVERYBODY[4:])
COLD = contenders(
    "tf.data best, shuffled",
    "Grain ArrayRecord, shuffled",
    "anybatch shuffled",
    "anybatch window",
    "bare limit, all cores",
)

THEME = Theme(
    "shuffled",
    "Shuffled batches, checksums checked",
    (
        Case("floats", "100 floats and a label", "floats", "records", EVERYBODY).slow(
            "Grain ArrayRecord, shuffled"
        ),
        Case("bytes784", "784 raw bytes and a label", "bytes784", "records", EVERYBODY, quick=False).slow(
            "Grain ArrayRecord, shuffled"
        ),
        Case("images", "150 KB raw images and a label", "images", "records", WITH_WEBDATASET, batch=64),
        Case(
            "shards100", "100 shards: the first batch counts", "shards100", "records", EVERYBODY, quick=False
        ).slow("Grain ArrayRecord, shuffled"),
        Case(
            "floats_cold", "100 floats, page cache cold", "floats", "records", COLD, cache="cold", quick=False
        ).slow("Grain ArrayRecord, shuffled"),
        Case(
            "images_cold",
            "150 KB images, page cache cold",
            "images",
            "records",
            COLD,
            batch=64,
            cache="cold",
            quick=False,
        ),
    ),
)
