"""What a second core brings."""

from benchmarks.registry import Case, Theme
from benchmarks.roster import contenders

EVERYBODY = contenders("tf.data best, fixed", "Grain ArrayRecord", "anybatch", "bare limit, all cores")

THEME = Theme(
    "cores",
    "One core, and two, page cache warm",
    tuple(
        Case(
            f"{dataset}_{cores}",
            f"{title}, {'one core' if cores == 1 else f'{cores} cores'}",
            dataset,
            "records",
            EVERYBODY,
            batch=batch,
            cores=cores,
            quick=dataset == "images",
        ).slow(*(["Grain ArrayRecord"] if dataset == "floats" else []))
        for dataset, title, batch in (
            ("floats", "100 floats and a label", 512),
            ("images", "150 KB raw images", 64),
        )
        for cores in (1, 2)
    ),
)
