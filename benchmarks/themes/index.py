"""Learning where the records are, and opening what is known."""

from benchmarks.registry import Case, Theme
from benchmarks.roster import contenders

READING = contenders(
    "tf.data count",
    "anybatch index",
    "anybatch index, all cores",
    "bare limit",
    "bare limit, all cores",
)

THEME = Theme(
    "index",
    "Where the records are, page cache warm",
    (
        Case("small_records", "index 450-byte records", "floats", "bytes", READING, quick=False),
        Case(
            "large_records",
            "index 150 KB records, of which only the headers need reading",
            "images",
            "bytes",
            READING,
            quick=False,
        ),
        Case(
            "open_1000",
            "open 1,000 shards that have an index",
            "shards1000",
            "shards",
            contenders("tf.data count", "anybatch open", "bare limit, opening"),
            check="before",
            quick=False,
        ),
    ),
)
