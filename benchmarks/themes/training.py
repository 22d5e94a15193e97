"""One epoch of training from records, end to end."""

from benchmarks.registry import Case, Theme
from benchmarks.roster import contenders

THEME = Theme(
    "training",
    "One epoch from TFRecord files, reading and training together",
    (
        Case(
            "table",
            "a model of two layers on 100 floats and a label, batches of 512",
            "floats",
            "records",
            contenders(
                "model.fit, tf.data usual", "model.fit, tf.data best", "ab.fit", "model.fit, constant batch"
            ),
            check="always",
        ),
        Case(
            "one_part",
            "the same model on the same tensors again and again: what ab.fit itself costs",
            "floats",
            "records",
            contenders("ab.fit, constant batch", "model.fit, constant batch"),
            check="always",
            quick=False,
        ),
    ),
)
