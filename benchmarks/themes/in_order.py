"""Whole batches decoded in file order, checksums checked, page cache warm."""

from benchmarks.registry import Case, Theme
from benchmarks.roster import contenders

EVERYBODY = contenders(
    "tf.data usual",
    "tf.data vectorised",
    "tf.data best",
    "tf.data best, fixed",
    "tf.data best in order",
    "Grain",
    "Grain ArrayRecord",
    "tfrecord",
    "anybatch",
    "anybatch first sight",
    "bare limit",
    "bare limit, all cores",
)

# one file per value: fair to what it is made for, and too slow to wait for with records of 450 bytes
WITH_WEBDATASET = (*EVERYBODY[:8], *contenders("WebDataset"), *EVERYBODY[8:])
NOT_RAGGED = {"Grain", "Grain ArrayRecord"}  # their batches are dense

THEME = Theme(
    "in_order",
    "Batches in file order, page cache warm, checksums checked",
    (
        Case("floats", "100 floats and a label", "floats", "records", EVERYBODY).slow("Grain ArrayRecord"),
        Case("bytes784", "784 raw bytes and a label", "bytes784", "records", EVERYBODY, quick=False).slow(
            "Grain ArrayRecord"
        ),
        Case("images", "150 KB raw images and a label", "images", "records", WITH_WEBDATASET, batch=64),
        Case(
            "ragged",
            "0 to 60 integers, a byte string and a label",
            "ragged",
            "records",
            tuple(one for one in EVERYBODY if one.name not in NOT_RAGGED),
        ),
    ),
)
